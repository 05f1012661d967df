-- # UNION ALL and WITH

SELECT city, COUNT(*) AS n FROM (SELECT patient_id, city FROM visits UNION ALL SELECT patient_id, city FROM patients) AS u GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 21 of one unit
--> price: ε = 0.5, ρ = 0.106568, δ = 0; Laplace

SELECT AVG(x) AS mean FROM (SELECT cost AS x FROM visits UNION ALL SELECT birth_year FROM patients) AS u;
--> accepted
--> values: mean = AVG(u.x)
--> rows: at most 21 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COUNT(DISTINCT patient_id) AS people FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM patients UNION ALL SELECT patient_id FROM visits) AS u;
--> accepted
--> values: people = COUNT(DISTINCT u.patient_id)
--> rows: at most 41 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

WITH adults AS (SELECT * FROM visits WHERE age >= 18) SELECT city, AVG(cost) AS mean FROM adults GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: mean = AVG(adults.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

WITH adults AS (SELECT * FROM visits WHERE age >= 18), totals AS (SELECT patient_id, SUM(cost) AS total FROM adults GROUP BY patient_id) SELECT AVG(total) AS mean FROM totals;
--> accepted
--> values: mean = AVG(totals.total)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Read twice, joined on the unit.
WITH v AS (SELECT patient_id, day FROM visits) SELECT COUNT(*) AS pairs FROM v AS a JOIN v AS b ON a.patient_id = b.patient_id;
--> accepted
--> values: pairs = COUNT(*)
--> rows: at most 400 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COUNT(*) FROM (SELECT city FROM visits UNION SELECT city FROM patients) AS u;
--> refused Q21

SELECT COUNT(*) FROM (SELECT city FROM visits EXCEPT SELECT city FROM patients) AS u;
--> refused Q21

SELECT COUNT(*) FROM (SELECT city FROM visits INTERSECT SELECT city FROM patients) AS u;
--> refused Q21

SELECT COUNT(*) FROM (SELECT city, age FROM visits UNION ALL SELECT city FROM patients) AS u;
--> refused Q21

SELECT COUNT(*) FROM (SELECT city FROM visits UNION ALL SELECT birth_year FROM patients) AS u;
--> refused Q10

-- Rows of different units have no owner in common.
SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT ward FROM shifts) AS u;
--> refused Q18

SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM patients;
--> accepted
--> question 1: SELECT COUNT(*) AS count FROM visits AS visits
--> question 2: SELECT COUNT(*) AS count FROM patients AS patients
--> computed: SELECT * FROM question.1 UNION ALL SELECT * FROM question.2
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.12246, δ = 0; Laplace

WITH unused AS (SELECT * FROM patients) SELECT COUNT(*) FROM visits;
--> refused Q29

WITH RECURSIVE r AS (SELECT age FROM visits UNION ALL SELECT age + 1 FROM r) SELECT COUNT(*) FROM r;
--> refused Q29

WITH v(a, b) AS (SELECT age, cost FROM visits) SELECT AVG(a) FROM v;
--> accepted
--> values: avg_a = AVG(v.a)
--> rows: at most 20 of one unit

WITH visits AS (SELECT * FROM patients) SELECT COUNT(*) FROM visits;
--> refused Q8

WITH v AS MATERIALIZED (SELECT * FROM visits) SELECT COUNT(*) FROM v;
--> refused Q11
