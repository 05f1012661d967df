-- # What is computed from released values is free

SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 100;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> after: HAVING
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- HAVING may use the name.
SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY city HAVING n > 100 AND mean < 500;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*), mean = AVG(visits.cost)
--> after: HAVING
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC, city LIMIT 2;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> after: ORDER BY, LIMIT 2
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, SUM(cost) / COUNT(*) AS mean, ROUND(100 * COUNTIF(paid) / COUNT(*), 1) AS paid_percent FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: sum_cost = SUM(visits.cost), count = COUNT(*), count_2 = COUNT(*) FILTER(WHERE visits.paid)
--> after: computed mean, paid_percent
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576074, δ = 0; Laplace, Laplace

SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY ABS(AVG(cost) - 100);
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*), avg_cost = AVG(visits.cost)
--> after: ORDER BY
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT CASE WHEN COUNT(*) > 1000 THEN 'many' ELSE 'few' END AS size FROM visits;
--> accepted
--> values: count = COUNT(*)
--> after: computed size
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT UPPER(city) AS place, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> after: computed place
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT 'visits' AS what, COUNT(*) AS n, 2026 AS year FROM visits;
--> accepted
--> values: n = COUNT(*)
--> after: computed what, year
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Also as a SELECT around the question.
SELECT city, n / 2 AS half FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s WHERE n > 100 ORDER BY half DESC LIMIT 5;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city, n / 2 AS half FROM (SELECT * FROM question.1) AS s WHERE n > 100 ORDER BY half DESC LIMIT 5
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

WITH counts AS (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) SELECT * FROM counts WHERE n > 10;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: WITH counts AS (SELECT * FROM question.1) SELECT * FROM counts AS counts WHERE n > 10
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT MAX(n) FROM (SELECT * FROM question.1) AS s
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n NULLS FIRST;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city AS city, n AS n FROM question.1 ORDER BY n NULLS FIRST
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT 5 OFFSET 2;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city AS city, n AS n FROM question.1 LIMIT 5 OFFSET 2
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, COUNT(*) AS n FROM visits GROUP BY city LIMIT age;
--> refused Q31

SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY age;
--> refused Q24

SELECT city + COUNT(*) FROM visits GROUP BY city;
--> refused Q10

SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING n;
--> refused Q10

SELECT city, COUNT(*) AS n FROM visits GROUP BY city QUALIFY RANK() OVER (ORDER BY n) = 1;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city AS city, n AS n FROM question.1 QUALIFY RANK() OVER (ORDER BY (n)) = 1
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n, AVG(age) AS n FROM visits;
--> refused Q8

SELECT city, x FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s;
--> refused Q7

-- The outer names are the outer ones: SQL's own scoping.
SELECT FLOOR(age / 10) AS decade, n FROM (SELECT FLOOR(age / 10) AS age, COUNT(*) AS n FROM visits GROUP BY 1) AS s;
--> accepted
--> question 1: SELECT FLOOR(visits.age / 10) AS age, COUNT(*) AS n FROM visits AS visits GROUP BY FLOOR(visits.age / 10)
--> computed: SELECT FLOOR(age / 10) AS decade, n FROM (SELECT * FROM question.1) AS s
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT n + 100 AS n FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING n > 25) AS s;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city HAVING COUNT(*) > 25
--> computed: SELECT n + 100 AS n FROM (SELECT * FROM question.1) AS s
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT 0 - n AS n FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s ORDER BY n DESC LIMIT 2;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT 0 - n AS n FROM (SELECT * FROM question.1) AS s ORDER BY n DESC LIMIT 2
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Windows over released numbers: shares, ranks, growth, running totals.
SELECT city, COUNT(*) AS n, 100 * COUNT(*) / SUM(COUNT(*)) OVER () AS percent FROM visits GROUP BY city;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city AS city, n AS n, 100 * n / SUM(n) OVER () AS percent FROM question.1
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT month, n, n - LAG(n) OVER (ORDER BY month) AS growth FROM (SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1) AS m ORDER BY month;
--> accepted
--> question 1: SELECT DATE_TRUNC_MONTH(visits.day) AS month, COUNT(*) AS n FROM visits AS visits GROUP BY DATE_TRUNC_MONTH(visits.day)
--> computed: SELECT month, n, n - LAG(n) OVER (ORDER BY month) AS growth FROM (SELECT * FROM question.1) AS m ORDER BY month
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

WITH m AS (SELECT MONTH(day) AS month, SUM(cost) AS cost FROM visits GROUP BY 1) SELECT month, SUM(cost) OVER (ORDER BY month ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total FROM m;
--> accepted
--> question 1: SELECT MONTH(visits.day) AS month, SUM(visits.cost) AS cost FROM visits AS visits GROUP BY MONTH(visits.day)
--> computed: WITH m AS (SELECT * FROM question.1) SELECT month, SUM(cost) OVER (ORDER BY month ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total FROM m AS m
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT city, sex, n FROM (SELECT v.city, p.sex, COUNT(*) AS n FROM visits AS v JOIN patients AS p ON v.patient_id = p.patient_id GROUP BY v.city, p.sex) AS s QUALIFY ROW_NUMBER() OVER (PARTITION BY city ORDER BY n DESC) = 1;
--> accepted
--> question 1: SELECT v.city AS city, p.sex AS sex, COUNT(*) AS n FROM visits AS v JOIN patients AS p ON v.patient_id = p.patient_id GROUP BY v.city, p.sex
--> computed: SELECT city, sex, n FROM (SELECT * FROM question.1) AS s QUALIFY ROW_NUMBER() OVER (PARTITION BY city ORDER BY n DESC) = 1
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT DISTINCT ROUND(AVG(cost), -2) AS mean FROM visits GROUP BY city;
--> accepted
--> question 1: SELECT visits.city AS city, ROUND(AVG(visits.cost), -2) AS mean FROM visits AS visits GROUP BY visits.city
--> computed: SELECT DISTINCT mean AS mean FROM question.1
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Several questions: each is priced, charged and stored by itself.
WITH adults AS (SELECT * FROM visits WHERE age >= 18), a AS (SELECT COUNT(*) AS n FROM adults), b AS (SELECT COUNT(*) AS n FROM visits) SELECT a.n / b.n AS share FROM a CROSS JOIN b;
--> accepted
--> question 1: SELECT COUNT(*) AS n FROM (SELECT visits.patient_id AS patient_id, visits.city AS city, visits.doctor AS doctor, visits.age AS age, visits.cost AS cost, visits.income AS income, visits.day AS day, visits.arrived AS arrived, visits.paid AS paid, visits.note AS note FROM visits AS visits WHERE visits.age >= 18) AS adults
--> question 2: SELECT COUNT(*) AS n FROM visits AS visits
--> computed: WITH a AS (SELECT * FROM question.1), b AS (SELECT * FROM question.2) SELECT a.n / b.n AS share FROM a AS a CROSS JOIN b AS b
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT (SELECT COUNT(*) FROM visits WHERE paid) / (SELECT COUNT(*) FROM visits) AS paid_share;
--> accepted
--> question 1: SELECT COUNT(*) AS count FROM visits AS visits WHERE visits.paid
--> question 2: SELECT COUNT(*) AS count FROM visits AS visits
--> computed: SELECT (SELECT * FROM question.1) / (SELECT * FROM question.2) AS paid_share
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, n FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s WHERE n > (SELECT AVG(n) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS p);
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> question 2: SELECT patients.city AS city, COUNT(*) AS n FROM patients AS patients GROUP BY patients.city
--> computed: SELECT city, n FROM (SELECT * FROM question.1) AS s WHERE n > (SELECT AVG(n) FROM (SELECT * FROM question.2) AS p)
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > (SELECT COUNT(*) / 10 FROM patients);
--> accepted
--> question 1: SELECT COUNT(*) / 10 AS column_1 FROM patients AS patients
--> question 2: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city AS city, n AS n FROM question.2 WHERE n > (SELECT * FROM question.1)
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT 'visits' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT 'patients', COUNT(*) FROM patients ORDER BY n;
--> accepted
--> question 1: SELECT 'visits' AS what, COUNT(*) AS n FROM visits AS visits
--> question 2: SELECT 'patients' AS column_1, COUNT(*) AS count FROM patients AS patients
--> computed: SELECT * FROM question.1 UNION ALL SELECT * FROM question.2 ORDER BY n
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT city FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS v WHERE n > 100 EXCEPT SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS p WHERE n > 100;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> question 2: SELECT patients.city AS city, COUNT(*) AS n FROM patients AS patients GROUP BY patients.city
--> computed: SELECT city FROM (SELECT * FROM question.1) AS v WHERE n > 100 EXCEPT SELECT city FROM (SELECT * FROM question.2) AS p WHERE n > 100
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT v.city, v.n / p.n AS visits_per_patient FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS v FULL JOIN (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS p USING (city);
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> question 2: SELECT patients.city AS city, COUNT(*) AS n FROM patients AS patients GROUP BY patients.city
--> computed: SELECT v.city, v.n / p.n AS visits_per_patient FROM (SELECT * FROM question.1) AS v FULL JOIN (SELECT * FROM question.2) AS p USING (city)
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- A public table joined to the answer.
SELECT c.region, SUM(s.n) AS n FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s JOIN cities AS c ON c.name = s.city GROUP BY c.region;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT c.region, SUM(s.n) AS n FROM (SELECT * FROM question.1) AS s JOIN public.cities AS c ON c.name = s.city GROUP BY c.region
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, n FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s WHERE city IN (SELECT name FROM cities WHERE region = 'north');
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city, n FROM (SELECT * FROM question.1) AS s WHERE city IN (SELECT name FROM public.cities AS cities WHERE region = 'north')
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- One question for each set of keys; asked together, totals are added up from the first.
SELECT city, paid, COUNT(*) AS n, GROUPING(city, paid) AS level FROM visits GROUP BY CUBE(city, paid) ORDER BY level, n DESC;
--> accepted
--> question 1: SELECT visits.city AS city, visits.paid AS paid, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city, visits.paid
--> question 2: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> question 3: SELECT visits.paid AS paid, COUNT(*) AS n FROM visits AS visits GROUP BY visits.paid
--> question 4: SELECT COUNT(*) AS n FROM visits AS visits
--> computed: SELECT city AS city, paid AS paid, n AS n, ((0 * 2 + grouping.city) * 2 + grouping.paid) AS level FROM (SELECT city, paid, n, 0 AS grouping.city, 0 AS grouping.paid FROM question.1 UNION ALL SELECT city, NULL AS paid, n, 0 AS grouping.city, 1 AS grouping.paid FROM question.2 UNION ALL SELECT NULL AS city, paid, n, 1 AS grouping.city, 0 AS grouping.paid FROM question.3 UNION ALL SELECT NULL AS city, NULL AS paid, n, 1 AS grouping.city, 1 AS grouping.paid FROM question.4) AS question.sets ORDER BY level, n DESC
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, AVG(cost) AS mean FROM visits GROUP BY GROUPING SETS ((city), ());
--> accepted
--> question 1: SELECT visits.city AS city, AVG(visits.cost) AS mean FROM visits AS visits GROUP BY visits.city
--> question 2: SELECT AVG(visits.cost) AS mean FROM visits AS visits
--> computed: SELECT city AS city, mean AS mean FROM (SELECT city, mean, 0 AS grouping.city FROM question.1 UNION ALL SELECT NULL AS city, mean, 1 AS grouping.city FROM question.2) AS question.sets
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace / ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- One offer for all of them, or one for each.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.4) a.n - b.n AS difference FROM (SELECT COUNT(*) AS n FROM visits) AS a, (SELECT COUNT(*) AS n FROM patients) AS b;
--> accepted
--> question 1: SELECT COUNT(*) AS n FROM visits AS visits
--> question 2: SELECT COUNT(*) AS n FROM patients AS patients
--> computed: SELECT a.n - b.n AS difference FROM (SELECT * FROM question.1) AS a, (SELECT * FROM question.2) AS b
--> spend: epsilon = 0.4
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT a.n - b.n AS difference FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.1) COUNT(*) AS n FROM visits) AS a, (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.3) COUNT(*) AS n FROM patients) AS b;
--> accepted
--> question 1: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.1) COUNT(*) AS n FROM visits AS visits
--> question 2: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.3) COUNT(*) AS n FROM patients AS patients
--> computed: SELECT a.n - b.n AS difference FROM (SELECT * FROM question.1) AS a, (SELECT * FROM question.2) AS b
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- Nothing but released numbers is looked at, and everything comes out the same the next time.
SELECT n, RANDOM() AS r FROM (SELECT COUNT(*) AS n FROM visits) AS s;
--> refused Q9

SELECT n, GETENV('HOME') AS home FROM (SELECT COUNT(*) AS n FROM visits) AS s;
--> refused Q9

SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s, READ_CSV('/etc/passwd');
--> refused Q6

SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s, "/etc/passwd";
--> refused Q6

SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s, DUCKDB_SETTINGS();
--> refused Q6

SELECT city, age FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s;
--> refused Q7

SELECT SUM(city) AS s FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s;
--> refused Q10

SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s UNION ALL SELECT age FROM visits;
--> refused Q12

WITH unused AS (SELECT COUNT(*) AS n FROM visits) SELECT COUNT(*) AS n FROM patients;
--> refused Q29

SELECT INTERVAL '1' DAY * n AS span FROM (SELECT COUNT(*) AS n FROM visits) AS s;
--> refused Q10
