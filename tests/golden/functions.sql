-- # Functions of one row; none can fail on any row

SELECT AVG(ROUND(cost, 1)) AS a, AVG(FLOOR(cost)) AS f, AVG(CEIL(cost)) AS c, AVG(ABS(cost - 100)) AS d FROM visits;
--> accepted
--> values: a = AVG(ROUND(visits.cost, 1)), f = AVG(FLOOR(visits.cost)), c = AVG(CEIL(visits.cost)), d = AVG(ABS(visits.cost - 100))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0299877, δ = 0; Laplace, Laplace, Laplace, Laplace

SELECT AVG(SQRT(cost)) AS root, AVG(LN(cost + 1)) AS logarithm, AVG(POWER(age, 2)) AS square FROM visits;
--> accepted
--> values: root = AVG(SQRT(visits.cost)), logarithm = AVG(LN(visits.cost + 1)), square = AVG(POWER(visits.age, 2))
--> rows: at most 20 of one unit
--> price: ε = 0.499993, ρ = 0.0394441, δ = 0; Laplace, Laplace, Laplace

-- Division by zero gives NULL; with a divisor away from zero, the bounds are known.
SELECT AVG(cost / (age + 1)) AS per_year FROM visits;
--> accepted
--> values: per_year = AVG(visits.cost / (visits.age + 1))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT AVG(age % 7) AS a, AVG(MOD(age, 7)) AS b, AVG(age // 10) AS c FROM visits;
--> accepted
--> values: a = AVG(visits.age % 7), c = AVG(visits.age // 10)
--> after: computed b
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576018, δ = 0; Laplace, Laplace

SELECT AVG(CAST(cost AS INTEGER)) AS whole, AVG(cost::INT) AS short, AVG(TRY_CAST(cost AS BIGINT)) AS tried FROM visits;
--> accepted
--> values: whole = AVG(CAST(visits.cost AS BIGINT))
--> after: computed short, tried
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT LOWER(TRIM(doctor)) AS doctor, COUNT(*) AS n FROM visits GROUP BY LOWER(TRIM(doctor));
--> accepted
--> groups: doctor (private)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

SELECT SUBSTR(city, 1, 1) AS letter, COUNT(*) AS n FROM visits GROUP BY letter;
--> accepted
--> groups: letter (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT CONCAT(city, '!') AS a, COUNT(*) AS n FROM visits GROUP BY city || '!';
--> accepted
--> groups: a (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT AVG(LENGTH(note)) AS letters, COUNTIF(STARTS_WITH(note, 'dr')) AS dr FROM visits;
--> accepted
--> values: letters = AVG(LENGTH(visits.note)), dr = COUNT(*) FILTER(WHERE STARTS_WITH(visits.note, 'dr'))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576074, δ = 0; Laplace, Laplace

SELECT AVG(DATE_DIFF('day', DATE '2024-01-01', day)) AS days FROM visits;
--> accepted
--> values: days = AVG(DATE_DIFF_DAYS(CAST('2024-01-01' AS DATE), visits.day))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- BigQuery's order of arguments.
SELECT DATE_TRUNC(day, MONTH) AS month, AVG(DATE_DIFF(day, DATE '2024-01-01', DAY)) AS days FROM visits GROUP BY month;
--> accepted
--> groups: month (36 public and NULL)
--> values: days = AVG(DATE_DIFF_DAYS(CAST('2024-01-01' AS DATE), visits.day))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT DAYOFWEEK(day) AS weekday, COUNT(*) AS n FROM visits GROUP BY weekday;
--> accepted
--> groups: weekday (7 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT AVG(NULLIF(age, 0)) AS age, AVG(COALESCE(cost, 0)) AS cost FROM visits;
--> accepted
--> values: age = AVG(NULLIF(visits.age, 0)), cost = AVG(COALESCE(visits.cost, 0))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576016, δ = 0; Laplace, Laplace

SELECT RANDOM() AS r, COUNT(*) FROM visits GROUP BY r;
--> refused Q9

SELECT COUNT(*) FROM visits WHERE ERROR(note);
--> refused Q9

SELECT AVG("abs"(cost)) FROM visits;
--> refused Q9

SELECT AVG(ABS(cost, age)) FROM visits;
--> refused Q10

SELECT AVG(LENGTH(cost)) FROM visits;
--> refused Q10

SELECT AVG(CAST(note AS JSON)) FROM visits;
--> refused Q11

SELECT AVG(CAST(cost AS DECIMAL(10, 2))) FROM visits;
--> accepted
--> values: avg = AVG(CASE WHEN ABS(ROUND(CAST(visits.cost AS DOUBLE), 2)) < 100000000 THEN ROUND(CAST(visits.cost AS DOUBLE), 2) ELSE NULL END)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT AVG(cost & 1) FROM visits;
--> refused Q11

SELECT AVG(x -> x + 1) FROM visits;
--> refused Q2

-- SUBSTR(note, 1, 3) by another name.
SELECT COUNT(*) FROM visits WHERE LEFT(note, 3) = 'flu';
--> accepted
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Sizes of types.
SELECT SUM(CAST(cost AS DECIMAL(10, 2))) AS total FROM visits;
--> accepted
--> values: total = SUM(CASE WHEN ABS(ROUND(CAST(visits.cost AS DOUBLE), 2)) < 100000000 THEN ROUND(CAST(visits.cost AS DOUBLE), 2) ELSE NULL END)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT SUBSTRING(doctor FROM 1 FOR 2) AS start, COUNT(*) AS n FROM visits GROUP BY start;
--> accepted
--> groups: start (private)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

SELECT COUNT(*) AS n FROM visits WHERE CAST(cost AS DECIMAL(2, 10)) > 1;
--> refused Q11
