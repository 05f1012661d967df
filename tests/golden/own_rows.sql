-- # The person's own rows: windows, sub-queries, different rows

-- Readmissions: visits of a person at most 30 days after their visit before.
SELECT COUNT(*) AS readmissions FROM (SELECT patient_id, day - LAG(day) OVER (PARTITION BY patient_id ORDER BY day) AS gap FROM visits) AS v WHERE gap <= 30;
--> accepted
--> values: readmissions = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- First events, last events.
SELECT city, COUNT(*) AS n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) AS place FROM visits) AS v WHERE place = 1 GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, COUNT(*) AS n FROM (SELECT patient_id, city FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day DESC) = 1) AS v GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT AVG(total) AS mean FROM (SELECT patient_id, SUM(cost) OVER w AS total FROM visits WINDOW w AS (PARTITION BY patient_id ORDER BY day ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)) AS v;
--> accepted
--> values: mean = AVG(v.total)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT AVG(change) AS mean FROM (SELECT patient_id, cost - LAG(cost, 1, 0) OVER (PARTITION BY patient_id, city ORDER BY day DESC) AS change FROM visits) AS v;
--> accepted
--> values: mean = AVG(v.change)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT MAX(place) AS places FROM (SELECT patient_id, DENSE_RANK() OVER (PARTITION BY patient_id ORDER BY cost DESC) AS place FROM visits QUALIFY place <= 3) AS v;
--> accepted
--> values: places = MAX(v.place)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

-- Everybody's rows are not one person's.
SELECT COUNT(*) FROM (SELECT patient_id, ROW_NUMBER() OVER (ORDER BY cost) AS place FROM visits) AS v WHERE place <= 10;
--> refused Q14

SELECT COUNT(*) FROM (SELECT patient_id, RANK() OVER (PARTITION BY city ORDER BY cost) AS place FROM visits) AS v;
--> refused Q14

SELECT COUNT(*) FROM (SELECT station, LAG(level) OVER (PARTITION BY station ORDER BY level) AS x FROM readings) AS v;
--> refused Q14

SELECT COUNT(*) FROM (SELECT patient_id, SUM(income) OVER (PARTITION BY patient_id) AS x FROM visits) AS v;
--> refused Q1

SELECT COUNT(*) FROM (SELECT patient_id, LAST_VALUE(cost) OVER (PARTITION BY patient_id ORDER BY day) AS x FROM visits) AS v;
--> refused Q14

SELECT COUNT(*) FROM (SELECT patient_id, NTILE(4) OVER (PARTITION BY patient_id ORDER BY day) AS x FROM visits) AS v;
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) FROM (SELECT patient_id, LAG(cost, 2000) OVER (PARTITION BY patient_id ORDER BY day) AS x FROM visits) AS v;
--> refused Q14

-- Sub-queries about the same person, or about public tables.
SELECT COUNT(*) AS n FROM patients AS p WHERE NOT EXISTS (SELECT * FROM visits AS v WHERE v.patient_id = p.patient_id AND v.cost > 100);
--> accepted
--> values: n = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT sex, COUNT(*) AS n FROM patients WHERE patient_id IN (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) > 2) GROUP BY sex;
--> accepted
--> groups: sex (3 public)
--> values: n = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT AVG(v.cost) AS mean FROM visits AS v WHERE v.cost > (SELECT AVG(w.cost) FROM visits AS w WHERE w.patient_id = v.patient_id);
--> accepted
--> values: mean = AVG(v.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE city IN (SELECT name FROM cities WHERE people > 100000);
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE doctor IN (SELECT doctor FROM visits WHERE cost > 4000);
--> refused Q15

-- Different rows of a person.
SELECT COUNT(*) AS pairs FROM (SELECT DISTINCT patient_id, city FROM visits) AS v;
--> accepted
--> values: pairs = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS people FROM (SELECT patient_id FROM visits UNION SELECT patient_id FROM patients) AS u;
--> accepted
--> values: people = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT COUNT(*) AS n FROM (SELECT DISTINCT city, doctor FROM visits) AS v;
--> accepted
--> question 1: SELECT visits.city AS city, visits.doctor AS doctor FROM visits AS visits GROUP BY visits.city, visits.doctor
--> computed: SELECT COUNT(*) AS n FROM (SELECT * FROM question.1) AS v
--> price: ε = ∞, ρ = 0.00438648, δ = 9.99756e-10; Gaussian

-- Parts of one person's rows.
SELECT AVG(cost) AS m FROM (SELECT patient_id, cost, NTILE(4) OVER (PARTITION BY patient_id ORDER BY day) AS part FROM visits) AS s WHERE part = 1;
--> accepted
--> values: m = AVG(s.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT AVG(part) AS m FROM (SELECT patient_id, NTILE(age) OVER (PARTITION BY patient_id ORDER BY day) AS part FROM visits) AS s;
--> refused Q14
