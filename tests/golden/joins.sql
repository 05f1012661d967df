-- # Joins

-- With a public table; each row stays its owner's.
SELECT c.region, COUNT(*) AS n FROM visits AS v JOIN cities AS c ON v.city = c.name GROUP BY c.region;
--> accepted
--> groups: region (2 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT c.region, COUNT(*) AS n FROM visits v LEFT JOIN cities c ON v.city = c.name GROUP BY c.region;
--> accepted
--> groups: region (2 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- The public table may come first.
SELECT region, SUM(cost) AS total FROM cities JOIN visits ON city = name GROUP BY region;
--> accepted
--> groups: region (2 public and NULL)
--> values: total = SUM(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits v JOIN cities c ON LOWER(v.city) = c.name AND c.people > 100000;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- On the unit; each person's rows meet their own only.
SELECT p.sex, AVG(v.cost) AS mean FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.sex;
--> accepted
--> groups: sex (3 public)
--> values: mean = AVG(v.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT p.sex, COUNT(*) AS n FROM patients p LEFT JOIN visits v USING (patient_id) GROUP BY p.sex;
--> accepted
--> groups: sex (3 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits v JOIN patients p ON v.patient_id = p.patient_id AND v.city = p.city WHERE v.age > 2026 - p.birth_year;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(DISTINCT v.patient_id) AS people FROM visits v JOIN patients p ON p.patient_id = v.patient_id;
--> accepted
--> values: people = COUNT(DISTINCT v.patient_id)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- A person's pairs of visits.
SELECT COUNT(*) AS pairs FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.day < b.day;
--> accepted
--> values: pairs = COUNT(*)
--> rows: at most 400 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT c.region, p.sex, COUNT(*) AS n FROM visits v JOIN patients p ON v.patient_id = p.patient_id JOIN cities c ON p.city = c.name GROUP BY c.region, p.sex;
--> accepted
--> groups: region (2 public and NULL), sex (3 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Anything else would make rows of two people.
SELECT COUNT(*) FROM visits a JOIN visits b ON a.doctor = b.doctor;
--> refused Q18

SELECT COUNT(*) FROM visits v JOIN shifts s ON v.day = s.day;
--> refused Q18

SELECT COUNT(*) FROM readings a JOIN readings b ON a.station = b.station;
--> refused Q18

SELECT COUNT(*) FROM visits, patients;
--> refused Q19

SELECT COUNT(*) FROM visits CROSS JOIN cities;
--> accepted
--> values: count = COUNT(*)
--> rows: no bound on one unit's
--> price: refused Q41

SELECT COUNT(*) FROM visits NATURAL JOIN patients;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits v RIGHT JOIN patients p ON v.patient_id = p.patient_id;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits v FULL JOIN patients p ON v.patient_id = p.patient_id;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM visits v SEMI JOIN patients p ON v.patient_id = p.patient_id;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT c.name, COUNT(*) FROM cities c LEFT JOIN visits v ON v.city = c.name GROUP BY c.name;
--> refused Q20

SELECT COUNT(*) FROM visits v JOIN cities c ON v.age > c.people;
--> refused Q20

SELECT COUNT(*) FROM visits v LEFT JOIN cities c ON v.city = c.name AND c.people > 5;
--> refused Q20

SELECT COUNT(*) FROM visits v JOIN cities c ON v.age = c.name;
--> refused Q10

SELECT COUNT(*) FROM visits v JOIN patients v ON v.patient_id = v.patient_id;
--> refused Q8

SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id WHERE city = 'york';
--> refused Q8

SELECT COUNT(*) FROM visits, LATERAL (SELECT 1) AS s;
--> refused Q19

SELECT COUNT(*) FROM (visits v JOIN patients p ON v.patient_id = p.patient_id);
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Whoever is on one side alone stays; so does what the other side says.
SELECT p.sex, COUNT(v.cost) AS n FROM visits v FULL OUTER JOIN patients p USING (patient_id) GROUP BY p.sex;
--> accepted
--> groups: sex (3 public and NULL)
--> values: n = COUNT(v.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits FULL JOIN cities ON city = name;
--> refused Q19

SELECT c.region, COUNT(v.city) AS n FROM cities c LEFT JOIN visits v ON v.city = c.name GROUP BY c.region;
--> refused Q20

SELECT COUNT(*) AS n FROM visits v CROSS JOIN patients p;
--> refused Q19

-- Constants joined are the groups wanted.
SELECT k.town, COUNT(v.cost) AS n FROM (VALUES ('york'), ('hull')) AS k(town) LEFT JOIN visits v ON v.city = k.town GROUP BY k.town;
--> accepted
--> groups: town (2 public)
--> values: n = COUNT(v.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT k.part, COUNT(*) AS n FROM visits v JOIN (VALUES ('york', 'east'), ('leeds', 'west')) AS k(town, part) ON k.town = v.city GROUP BY k.part;
--> accepted
--> groups: part (2 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- A condition on them chooses among the groups; one that leaves none is not paid for.
SELECT k.part, COUNT(*) AS n FROM (VALUES ('york', 'east'), ('leeds', 'west')) AS k(town, part) LEFT JOIN visits v ON k.town = v.city WHERE LENGTH(k.town) > 4 GROUP BY k.part;
--> accepted
--> groups: part (2 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT k.town, COUNT(*) AS n FROM (VALUES ('york'), ('hull')) AS k(town) LEFT JOIN visits v ON v.city = k.town WHERE LENGTH(k.town) > 4 GROUP BY k.town;
--> refused Q36

SELECT city, COUNT(*) AS n FROM UNNEST(['york', 'hull']) AS city LEFT JOIN visits USING (city) GROUP BY city;
--> accepted
--> groups: city (2 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT k.town, COUNT(*) AS n FROM visits v LEFT JOIN (VALUES ('york')) AS k(town) ON k.town = v.city GROUP BY k.town;
--> accepted
--> groups: town (1 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Each row once for each constant: so many times the rows of one patient, and priced so.
SELECT COUNT(*) AS n FROM visits CROSS JOIN (VALUES (1), (2)) AS k(n);
--> accepted
--> values: n = COUNT(*)
--> rows: at most 40 of one unit
--> price: ε = 0.5, ρ = 0.106541, δ = 0; Laplace

SELECT k.below, COUNT(*) AS n FROM visits v CROSS JOIN (VALUES (18), (65), (120)) AS k(below) WHERE v.age < k.below GROUP BY k.below;
--> accepted
--> groups: below (3 public)
--> values: n = COUNT(*)
--> rows: at most 60 of one unit
--> price: ε = 0.5, ρ = 0.106536, δ = 0; Laplace

SELECT v.city, k.age, COUNT(*) AS n FROM visits v JOIN patients p ON p.patient_id = v.patient_id, UNNEST([30, 60]) AS k(age) WHERE v.age < k.age GROUP BY v.city, k.age;
--> accepted
--> groups: city (3 public and NULL), age (2 public)
--> values: n = COUNT(*)
--> rows: at most 40 of one unit
--> price: ε = 0.5, ρ = 0.106541, δ = 0; Laplace

-- More than the 1,000 rows that a join may make of one unit.
SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient_id = b.patient_id CROSS JOIN (VALUES (1), (2), (3)) AS k(n);
--> accepted
--> values: n = COUNT(*)
--> rows: at most 1200 of one unit
--> price: refused Q45

-- The latest row of the same patient, and what is looked up beside a row.
SELECT AVG(p.birth_year) FROM visits v ASOF JOIN patients p ON p.patient_id = v.patient_id AND v.cost >= p.birth_year;
--> accepted
--> values: avg_birth_year = AVG(p.birth_year)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COUNT(*) FROM visits v ASOF LEFT JOIN patients p ON p.patient_id = v.patient_id AND v.cost >= p.birth_year;
--> refused Q19

SELECT COUNT(*) FROM patients p CROSS JOIN LATERAL (SELECT SUM(v.cost) AS total FROM visits v WHERE v.patient_id = p.patient_id) AS l WHERE l.total > 100;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT k.n, COUNT(v.cost) AS visits FROM generate_series(1, 12) AS k(n) LEFT JOIN visits v ON MONTH(v.day) = k.n GROUP BY k.n;
--> accepted
--> groups: n (12 public)
--> values: visits = COUNT(v.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT favourite, COUNT(*) AS n FROM (SELECT patient_id, MIN_BY(city, day) AS favourite FROM visits GROUP BY patient_id) AS s GROUP BY favourite;
--> accepted
--> groups: favourite (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT COUNT(*) FROM visits a WHERE a.cost > (SELECT AVG(b.cost) FROM visits b WHERE b.city = a.city);
--> accepted
--> question 1: SELECT COUNT(*) AS count FROM visits AS a WHERE a.cost > CAST(NULL AS DOUBLE)
--> question 2: SELECT b.city AS city, AVG(b.cost) AS avg_cost FROM visits AS b GROUP BY b.city
--> computed: SELECT * FROM question.1
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Misspelt, and refused with the whole question as it was meant.
SELECT city, MEDAIN(cost) FROM visits GROUP BY city;
--> refused Q9

SELECT COUNT(*) FROM visits GRUOP BY city;
--> refused Q2

SELECT city, COUNT(*) AS n FROM visits WHERE n > 5 GROUP BY city;
--> refused Q25

SELECT BOOL_OR(cost > 500) FROM visits;
--> refused Q32
