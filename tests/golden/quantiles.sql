-- # Medians, quantiles, extremes

SELECT MEDIAN(age) AS middle FROM visits;
--> accepted
--> values: middle = QUANTILE_CONT(visits.age, '1/2')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

SELECT PERCENTILE_CONT(cost, 0.9) AS p90 FROM visits;
--> accepted
--> values: p90 = QUANTILE_CONT(visits.cost, '9/10')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

-- The standard's spelling.
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost) AS p90 FROM visits;
--> accepted
--> values: p90 = QUANTILE_CONT(visits.cost, '9/10')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

-- Five numbers that divide the rows into four.
SELECT APPROX_QUANTILES(age, 4) AS quartiles FROM visits;
--> accepted
--> values: quartiles = QUANTILE_CONT(visits.age, '0', '1/4', '1/2', '3/4', '1')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0104167, δ = 0; Selection

-- One of them.
SELECT APPROX_QUANTILES(age, 100)[OFFSET(95)] AS p95 FROM visits;
--> accepted
--> values: p95 = QUANTILE_CONT(visits.age, '19/20')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

-- Any parts, also without a finite decimal.
SELECT QUANTILE_CONT(cost, '1/3', '2/3') AS thirds FROM visits;
--> accepted
--> values: thirds = QUANTILE_CONT(visits.cost, '1/3', '2/3')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.015625, δ = 0; Selection

SELECT city, MEDIAN(cost) AS middle FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: middle = QUANTILE_CONT(visits.cost, '1/2')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

-- Extremes are private quantiles near the end, and the answer says so.
SELECT MIN(cost) AS least, MAX(cost) AS most FROM visits;
--> accepted
--> values: least = MIN(visits.cost), most = MAX(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.015625, δ = 0; Selection

SELECT MEDIAN(cost) FILTER (WHERE paid) AS middle FROM visits;
--> accepted
--> values: middle = QUANTILE_CONT(visits.cost, '1/2') FILTER(WHERE visits.paid)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

SELECT PERCENTILE_CONT(cost, 1.5) FROM visits;
--> refused Q33

SELECT PERCENTILE_CONT(cost, age) FROM visits;
--> refused Q33

SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost DESC) FROM visits;
--> refused Q33

SELECT MEDIAN(income) FROM visits;
--> refused Q1

SELECT MAX(note) FROM visits;
--> refused Q33

SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY cost) FROM visits;
--> refused Q32

SELECT APPROX_QUANTILES(age, 0) FROM visits;
--> refused Q33

SELECT APPROX_QUANTILES(age, 4)[OFFSET(9)] FROM visits;
--> refused Q33

-- A list is selected by itself.
SELECT APPROX_QUANTILES(age, 4) + 1 FROM visits;
--> refused Q33

-- Days have a number: DATE_DIFF('day', DATE '1970-01-01', day).
SELECT MIN(day) AS first, MAX(day) AS last FROM visits;
--> refused Q33

-- Robust statistics: the distance of the quartiles, and a mean without the ends.
SELECT IQR(age) AS spread FROM visits;
--> accepted
--> values: spread = IQR(visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.015625, δ = 0; Selection

SELECT IQR(age) AS spread, MEDIAN(age) AS middle FROM visits;
--> accepted
--> values: spread = IQR(visits.age), middle = QUANTILE_CONT(visits.age, '1/2')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0104167, δ = 0; Selection

SELECT TRIMMED_MEAN(cost, 0.1) AS usual FROM visits;
--> accepted
--> values: usual = TRIMMED_MEAN(visits.cost, '1/10')
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0349946, δ = 0; ClippedSums

SELECT TRIMMED_MEAN(income, '1/3', bounds => AUTO) AS usual FROM visits;
--> accepted
--> values: usual = TRIMMED_MEAN(visits.income, '1/3', bounds => AUTO)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0349946, δ = 0; ClippedSums

SELECT IQR(income, bounds => AUTO) AS spread FROM visits;
--> accepted
--> values: spread = IQR(visits.income, bounds => AUTO)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.015625, δ = 0; Selection

SELECT TRIMMED_MEAN(cost, 0.5) FROM visits;
--> refused Q33

SELECT TRIMMED_MEAN(cost, 0) FROM visits;
--> refused Q33

SELECT TRIMMED_MEAN(cost) FROM visits;
--> refused Q33

SELECT TRIMMED_MEAN(cost, age) FROM visits;
--> refused Q33

SELECT IQR(cost, 0.5) FROM visits;
--> refused Q33

SELECT IQR(city) FROM visits;
--> refused Q33

SELECT IQR(income) FROM visits;
--> refused Q1
