-- # Sub-queries in FROM

-- Rows computed row by row.
SELECT AVG(double) AS mean FROM (SELECT cost * 2 AS double FROM visits WHERE paid) AS s;
--> accepted
--> values: mean = AVG(s.double)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- One person's own rows, aggregated: GROUP BY the unit.
SELECT AVG(n) AS visits_per_person FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS s;
--> accepted
--> values: visits_per_person = AVG(s.n)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.106577, δ = 0; Laplace

SELECT n, COUNT(*) AS people FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS s GROUP BY n;
--> accepted
--> groups: n (20 public)
--> values: people = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

SELECT AVG(total) AS mean, STDDEV(total) AS spread FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id HAVING COUNT(*) >= 2) AS s;
--> accepted
--> values: mean = AVG(s.total), spread = STDDEV_SAMP(s.total)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- By person and something else.
SELECT city, AVG(most) AS mean FROM (SELECT patient_id, city, MAX(cost) AS most FROM visits GROUP BY patient_id, city) AS s GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: mean = AVG(s.most)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Joined back to another table.
SELECT p.sex, AVG(s.total) AS mean FROM patients p JOIN (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS s ON p.patient_id = s.patient_id GROUP BY p.sex;
--> accepted
--> groups: sex (3 public)
--> values: mean = AVG(s.total)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT AVG(hours) AS per_nurse_day FROM (SELECT nurse, day, SUM(hours) AS hours FROM shifts GROUP BY nurse, day) AS s;
--> accepted
--> values: per_nurse_day = AVG(s.hours)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- * is every column, in a sub-query only.
SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 60) AS s WHERE paid;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT AVG(doctors) AS mean FROM (SELECT patient_id, COUNT(DISTINCT doctor) AS doctors, MIN(day) AS first FROM visits GROUP BY 1) AS s;
--> accepted
--> values: mean = AVG(s.doctors)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Several people in one row belong to nobody.
SELECT AVG(n) FROM (SELECT doctor, COUNT(*) AS n FROM visits GROUP BY doctor) AS s;
--> accepted
--> question 1: SELECT visits.doctor AS doctor, COUNT(*) AS n FROM visits AS visits GROUP BY visits.doctor
--> computed: SELECT AVG(n) FROM (SELECT * FROM question.1) AS s
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

SELECT AVG(n) FROM (SELECT nurse, COUNT(*) AS n FROM shifts GROUP BY nurse) AS s;
--> accepted
--> question 1: SELECT shifts.nurse AS nurse, COUNT(*) AS n FROM shifts AS shifts GROUP BY shifts.nurse
--> computed: SELECT AVG(n) FROM (SELECT * FROM question.1) AS s
--> price: ε = 0.499993, ρ = 0.0648493, δ = 0.000000001; Laplace, KeyRelease

SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits) AS s;
--> accepted
--> question 1: SELECT COUNT(*) AS n FROM visits AS visits
--> computed: SELECT AVG(n) FROM (SELECT * FROM question.1) AS s
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT AVG(n) FROM (SELECT station, COUNT(*) AS n FROM readings GROUP BY station) AS s;
--> accepted
--> question 1: SELECT readings.station AS station, COUNT(*) AS n FROM readings AS readings GROUP BY readings.station
--> computed: SELECT AVG(n) FROM (SELECT * FROM question.1) AS s
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- Of one person's rows only what stays bounded.
SELECT AVG(m) FROM (SELECT patient_id, MEDIAN(cost) AS m FROM visits GROUP BY patient_id) AS s;
--> refused Q32

SELECT AVG(m) FROM (SELECT patient_id, SUM(income) AS m FROM visits GROUP BY patient_id) AS s;
--> refused Q1

SELECT AVG(m) FROM (SELECT patient_id, COUNT(*) FILTER (WHERE paid) AS m FROM visits GROUP BY patient_id) AS s;
--> accepted
--> values: avg_m = AVG(s.m)
--> rows: at most 1 of one unit

SELECT AVG(c) FROM (SELECT patient_id, city AS c, COUNT(*) AS n FROM visits GROUP BY patient_id) AS s;
--> refused Q24

-- Which rows are left must not depend on others' rows.
SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 10) AS s;
--> refused Q16

SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost) AS s;
--> refused Q16

SELECT COUNT(*) FROM (SELECT DISTINCT city FROM visits) AS s;
--> refused Q35

SELECT COUNT(*) FROM (SELECT cost, cost FROM visits) AS s;
--> refused Q8

SELECT COUNT(*) FROM (VALUES (1), (2)) AS s;
--> refused Q19

-- A column at least.
SELECT COUNT(*) FROM (SELECT FROM visits) AS s;
--> refused Q35

-- Released numbers are not joined to people's rows.
SELECT AVG(v.cost) AS mean FROM visits AS v JOIN (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) AS s ON v.patient_id = s.patient_id;
--> refused Q22

-- A bare name is the sub-query's own, or else one of the row outside.
SELECT COUNT(*) AS n FROM visits WHERE EXISTS (SELECT 1 FROM cities WHERE name = city AND people > 300000);
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
