-- # Dates, spans and patterns as people type them

-- Now is a constant, fixed when the question is read.
SELECT COUNT(*) AS n FROM visits WHERE day >= CURRENT_DATE - INTERVAL '30 days';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE arrived > NOW() - INTERVAL 12 HOUR;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE day BETWEEN '2026-01-01' AND '2026-03-31' AND arrived < '2026-02-01 08:00';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE day > '2026-02-31';
--> refused Q31

SELECT COUNT(*) AS n FROM visits WHERE day > 'yesterday';
--> refused Q31

SELECT COUNT(*) AS n FROM visits WHERE paid = 1 OR paid = 'false';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- The unit first (DuckDB, Snowflake), last (BigQuery), or none.
SELECT AVG(DATE_DIFF('week', day, DATE '2026-12-31')) AS weeks, AVG(DATEDIFF(month, day, '2026-12-31')) AS months FROM visits;
--> accepted
--> values: weeks = AVG(WHOLE_WEEKS(visits.day, CAST('2026-12-31' AS DATE))), months = AVG(DATE_DIFF_MONTHS(visits.day, CAST('2026-12-31' AS DATE)))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576016, δ = 0; Laplace, Laplace

SELECT AVG(DATE_DIFF(DATE '2026-12-31', day, QUARTER)) AS quarters, AVG(DATEDIFF('2026-12-31', day)) AS days FROM visits;
--> accepted
--> values: quarters = AVG(DATE_DIFF_QUARTERS(visits.day, CAST('2026-12-31' AS DATE))), days = AVG(DATE_DIFF_DAYS(visits.day, CAST('2026-12-31' AS DATE)))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576017, δ = 0; Laplace, Laplace

SELECT COUNT(*) AS n FROM visits WHERE TIMESTAMPDIFF(HOUR, day, arrived) < 5 AND DATE_SUB('minute', day, arrived) > 30;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- PostgreSQL's ages and differences.
SELECT AVG(EXTRACT(YEAR FROM AGE(DATE '2026-12-31', day))) AS years, AVG(DATE '2026-12-31' - day) AS days FROM visits;
--> accepted
--> values: years = AVG(WHOLE_YEARS(visits.day, CAST('2026-12-31' AS DATE))), days = AVG(DATE_DIFF_DAYS(visits.day, CAST('2026-12-31' AS DATE)))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576031, δ = 0; Laplace, Laplace

SELECT COUNT(*) AS n FROM visits WHERE EXTRACT(EPOCH FROM (arrived - day)) / 3600 > 8 AND arrived - day < INTERVAL '18 hours';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE arrived - day > 3;
--> refused Q10

SELECT EXTRACT(HOUR FROM arrived - day) AS h, COUNT(*) AS n FROM visits GROUP BY 1;
--> refused Q10

SELECT COUNT(*) AS n FROM visits WHERE day + INTERVAL '1 year 6 months' > '2026-12-01' AND DATEADD(week, 2, day) < '2026-12-01' AND ADD_MONTHS(day, 3) < LAST_DAY('2026-12-01');
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE day + age * INTERVAL '1 day' < '2026-12-01' AND day + 7 < '2026-12-01';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE day + INTERVAL '1.5' DAY < '2026-12-01';
--> refused Q31

-- Months by name and number are public groups.
SELECT TO_CHAR(day, 'YYYY-MM') AS month, COUNT(*) AS n FROM visits GROUP BY month;
--> accepted
--> groups: month (36 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT FORMAT_DATE('%B', day) AS month, COUNT(*) AS n FROM visits GROUP BY month;
--> accepted
--> groups: month (12 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT STRFTIME(arrived, '%H') AS hour, COUNT(*) AS n FROM visits GROUP BY hour;
--> accepted
--> groups: hour (24 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT DAYNAME(day) AS weekday, COUNT(*) AS n FROM visits GROUP BY weekday;
--> accepted
--> groups: weekday (7 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT TO_CHAR(day, 'Month') AS month, COUNT(*) AS n FROM visits GROUP BY month;
--> refused Q31

-- BigQuery's weeks begin on Sunday.
SELECT DATE_TRUNC(day, WEEK) AS week, COUNT(*) AS n FROM visits WHERE day >= '2026-01-01' GROUP BY week;
--> accepted
--> groups: week (53 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT DATE_TRUNC(day, WEEK(MONDAY)) AS week, COUNT(*) AS n FROM visits WHERE day >= '2026-01-01' GROUP BY week;
--> accepted
--> groups: week (53 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT DATE_TRUNC('hour', arrived) AS hour, COUNT(*) AS n FROM visits GROUP BY hour;
--> accepted
--> groups: hour (private)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

-- Constant patterns.
SELECT COUNT(*) AS n FROM visits WHERE REGEXP_LIKE(note, '^fl[ua]') AND note ~* 'cough|fever' AND NOT REGEXP_CONTAINS(note, r);
--> refused Q7

SELECT COUNT(*) AS n FROM visits WHERE note ~ '^fl[ua]' AND note ~* 'cough|fever';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: refused Q46

SELECT COUNT(*) AS n FROM visits WHERE note ~ '(a)\1';
--> refused Q31

SELECT COUNT(*) AS n FROM visits WHERE note ~ doctor;
--> refused Q31

SELECT COUNT(*) AS n FROM visits WHERE RIGHT(note, 2) = 'ng' AND SPLIT_PART(note, '-', 2) = 'x' AND REPLACE(note, ' ', '') = 'flu' AND STRPOS(note, 'u') > 0;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT SPLIT_PART(city, 'o', 1) AS start, COUNT(*) AS n FROM visits GROUP BY start;
--> accepted
--> groups: start (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- A key is the same on all rows of its group.
SELECT ANY_VALUE(city) AS city, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT ANY_VALUE(doctor) AS doctor, COUNT(*) AS n FROM visits GROUP BY city;
--> refused Q32

SELECT QUANTILE_CONT(cost, [0.25, 0.5, 0.75]) AS quartiles FROM visits;
--> accepted
--> values: quartiles = QUANTILE_CONT(visits.cost, '1/4', '1/2', '3/4')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.015625, δ = 0; Selection

-- Whose clocks a column without a declared zone shows, the question says.
SELECT HOUR(arrived AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Paris') AS h, COUNT(*) AS n FROM visits GROUP BY h;
--> accepted
--> groups: h (24 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT HOUR(CONVERT_TIMEZONE('UTC', 'Europe/Paris', arrived)) AS h, COUNT(*) AS n FROM visits GROUP BY h;
--> accepted
--> groups: h (24 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT COUNT(*) AS n FROM visits WHERE arrived < NOW() AT TIME ZONE 'Europe/Paris';
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT HOUR(arrived AT TIME ZONE 'Europe/Paris') AS h, COUNT(*) AS n FROM visits GROUP BY h;
--> refused Q10

SELECT HOUR(CONVERT_TIMEZONE('UTC', 'Mars/Phobos', arrived)) AS h, COUNT(*) AS n FROM visits GROUP BY h;
--> refused Q10
