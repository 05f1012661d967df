-- # Sums and means

SELECT SUM(cost) AS total FROM visits;
--> accepted
--> values: total = SUM(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT AVG(cost) AS mean_cost, AVG(age) AS mean_age FROM visits;
--> accepted
--> values: mean_cost = AVG(visits.cost), mean_age = AVG(visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576016, δ = 0; Laplace, Laplace

-- Bounds go through arithmetic.
SELECT SUM(cost * 1.2 + 5) AS with_tax FROM visits;
--> accepted
--> values: with_tax = SUM((visits.cost * 1.2) + 5)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Also through division by a whole number: where it is 0, the quotient is NULL.
SELECT AVG(cost / age) AS per_year FROM visits;
--> accepted
--> values: per_year = AVG(visits.cost / visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Bounds can be put into the question.
SELECT AVG(GREATEST(LEAST(income, 200000), 0)) AS mean_income FROM visits;
--> accepted
--> values: mean_income = AVG(GREATEST(LEAST(visits.income, 200000), 0))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Or come from a condition.
SELECT AVG(income) AS mean_income FROM visits WHERE income BETWEEN 0 AND 200000;
--> accepted
--> values: mean_income = AVG(visits.income)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Or from CASE.
SELECT SUM(CASE WHEN income > 100000 THEN 100000 WHEN income < 0 THEN 0 ELSE income END) AS total FROM visits;
--> accepted
--> values: total = SUM(CASE WHEN visits.income > 100000 THEN 100000 WHEN visits.income < 0 THEN 0 ELSE visits.income END)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- A sum of truths.
SELECT SUM(IF(paid, 1, 0)) AS paid FROM visits;
--> accepted
--> values: paid = SUM(CASE WHEN visits.paid THEN 1 ELSE 0 END)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT SUM(cost) FILTER (WHERE paid AND age >= 18) AS paid_by_adults FROM visits;
--> accepted
--> values: paid_by_adults = SUM(visits.cost) FILTER(WHERE visits.paid AND visits.age >= 18)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Without bounds, one person could add anything.
SELECT SUM(income) FROM visits;
--> refused Q1

SELECT AVG(income) FROM visits WHERE income > 0;
--> refused Q1

SELECT AVG(age / cost) FROM visits;
--> refused Q1

SELECT SUM(note) FROM visits;
--> refused Q33

SELECT AVG(day) FROM visits;
--> refused Q33

SELECT SUM(cost, age) FROM visits;
--> refused Q33

SELECT SUM(DISTINCT cost) FROM visits;
--> refused Q13

SELECT SUM(AVG(cost)) FROM visits;
--> refused Q25

-- Bounds that nobody knows are looked for in the data, for half of the price.
SELECT AVG(income, bounds => AUTO) AS mean_income FROM visits;
--> accepted
--> values: mean_income = AVG(visits.income, bounds => AUTO)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0349946, δ = 0; ClippedSums

SELECT AVG(income, bounds => AUTO) AS a, SUM(income, contribution_bounds => AUTO) AS s, STDDEV(income, bounds => AUTO) AS d FROM visits;
--> accepted
--> values: a = AVG(visits.income, bounds => AUTO), s = SUM(visits.income, bounds => AUTO), d = STDDEV_SAMP(visits.income, bounds => AUTO)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0349946, δ = 0; ClippedSums

SELECT city, SUM(income, bounds => AUTO) AS total FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: total = SUM(visits.income, bounds => AUTO)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0349946, δ = 0; ClippedSums

SELECT SUM(cost, bounds => (0, 50)) AS total FROM visits;
--> accepted
--> values: total = SUM(visits.cost, contribution_bounds_per_row => (0.0, 50.0))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COUNT(*, bounds => AUTO) FROM visits;
--> refused Q33

SELECT SUM(income, contribution_bounds_per_group => AUTO) FROM visits;
--> refused Q33

SELECT MAX(income, bounds => AUTO) FROM visits;
--> refused Q33

SELECT AVG(income, bounds => MANUAL) FROM visits;
--> refused Q33

SELECT AVG(income, bounds => AUTO, contribution_bounds_per_row => (0, 10)) FROM visits;
--> refused Q33
