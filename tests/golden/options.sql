-- # Options of our own, in the same clause

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(rho = 0.01) COUNT(*) AS n FROM visits;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> spend: rho 1/100
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Accuracy first: the cheapest price for a margin.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(within = 50, confidence = 0.9) COUNT(*) AS n FROM visits;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> spend: within 50
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, max_rows = 5) COUNT(*) AS n FROM visits;
--> accepted
--> values: n = COUNT(*)
--> rows: at most 20 of one unit, 5 counted
--> spend: epsilon 1/2
--> price: ε = 0.5, ρ = 0.107186, δ = 0; Laplace

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, max_groups_contributed = 3, max_rows_per_group = 2) city, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit, in 3 groups, 2 in each
--> spend: epsilon 1/2
--> price: ε = 0.5, ρ = 0.106986, δ = 0; Laplace

-- What a question would cost.
EXPLAIN SELECT city, COUNT(*) AS n FROM visits GROUP BY city;
--> explained
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, rho = 0.1) COUNT(*) FROM visits;
--> refused Q28

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(confidence = 0.9) COUNT(*) FROM visits;
--> refused Q28

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows = 5, max_groups_contributed = 3) COUNT(*) FROM visits;
--> refused Q28
