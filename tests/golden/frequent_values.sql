-- # Most frequent values, histograms

SELECT MODE(city) AS usual FROM visits;
--> accepted
--> values: usual = MODE(visits.city)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

SELECT MODE() WITHIN GROUP (ORDER BY city) AS usual FROM visits;
--> accepted
--> values: usual = MODE(visits.city)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

-- Each patient counts once for each city, however often they went there: a twentieth of the noise.
SELECT MODE(city) AS usual FROM (SELECT DISTINCT patient_id, city FROM visits);
--> accepted
--> values: usual = MODE(subquery_1.city)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

-- The same in the words that people type; so is the answer, and who has paid for one has the other.
SELECT MODE(DISTINCT city) AS usual FROM visits;
--> accepted
--> values: usual = MODE(subquery_1.city)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.03125, δ = 0; Selection

SELECT TOP_K(DISTINCT city, 2) AS top FROM visits WHERE age > 30;
--> accepted
--> values: top = TOP_K(subquery_1.city, 2)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.015625, δ = 0; Selection

-- Beside a number of rows it would be asked of other rows than the rest.
SELECT MODE(DISTINCT city), COUNT(*) FROM visits;
--> refused Q13

SELECT MODE(DISTINCT city) FILTER (WHERE age > 30) FROM visits;
--> refused Q13

SELECT APPROX_TOP_COUNT(city, 2) AS top FROM visits;
--> accepted
--> values: top = TOP_K(visits.city, 2)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.015625, δ = 0; Selection

-- Values nobody declared are not chosen among, unless the question lists them.
SELECT TOP_K(doctor, 2) AS top FROM visits WHERE doctor IN ('Adams', 'Brown', 'Clark');
--> accepted
--> values: top = TOP_K(visits.doctor, 2)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.015625, δ = 0; Selection

SELECT TOP_K(doctor, 10) AS top FROM visits;
--> refused Q40

-- Rows in [0, 18), [18, 65) and [65, 120).
SELECT HISTOGRAM(age, 0, 18, 65, 120) AS ages FROM visits;
--> accepted
--> values: ages = HISTOGRAM(visits.age, 0, 18, 65, 120)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- A histogram as groups.
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM visits GROUP BY decade;
--> accepted
--> groups: decade (13 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT HISTOGRAM(age, 65, 18, 0) FROM visits;
--> refused Q33

SELECT HISTOGRAM(city, 0, 1) FROM visits;
--> refused Q33

SELECT HISTOGRAM(age) FROM visits;
--> refused Q33

SELECT TOP_K(city, 0) FROM visits;
--> refused Q33

SELECT TOP_K(city, age) FROM visits;
--> refused Q33
