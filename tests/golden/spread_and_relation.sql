-- # Variances, correlations, regressions

SELECT VARIANCE(age) AS v, STDDEV(age) AS s FROM visits;
--> accepted
--> values: v = VAR_SAMP(visits.age), s = STDDEV_SAMP(visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT VAR_POP(cost) AS v, STDDEV_POP(cost) AS s FROM visits;
--> accepted
--> values: v = VAR_POP(visits.cost), s = STDDEV_POP(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT VAR_SAMP(cost) AS v, STDDEV_SAMP(cost) AS s FROM visits;
--> accepted
--> values: v = VAR_SAMP(visits.cost), s = STDDEV_SAMP(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT CORR(cost, age) AS r FROM visits;
--> accepted
--> values: r = CORR(visits.cost, visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COVAR_POP(cost, age) AS p, COVAR_SAMP(cost, age) AS s FROM visits;
--> accepted
--> values: p = COVAR_POP(visits.cost, visits.age), s = COVAR_SAMP(visits.cost, visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT REGR_SLOPE(cost, age) AS slope, REGR_INTERCEPT(cost, age) AS base FROM visits;
--> accepted
--> values: slope = REGR_SLOPE(visits.cost, visits.age), base = REGR_INTERCEPT(visits.cost, visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT city, AVG(cost) AS mean, STDDEV(cost) AS spread, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: mean = AVG(visits.cost), spread = STDDEV_SAMP(visits.cost), n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT CORR(cost) FROM visits;
--> refused Q33

SELECT CORR(cost, income) FROM visits;
--> refused Q1

SELECT REGR_R2(cost, age) FROM visits;
--> accepted
--> values: corr_cost = CORR(visits.cost, visits.age)
--> after: computed regr_r2
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT KURTOSIS(cost) FROM visits;
--> accepted
--> values: count = COUNT(visits.cost - 2500), avg = AVG(POWER(visits.cost - 2500, 4)), avg_2 = AVG(visits.cost - 2500), avg_3 = AVG(POWER(visits.cost - 2500, 3)), var_pop = VAR_POP(visits.cost - 2500)
--> after: computed kurtosis
--> rows: at most 20 of one unit
--> price: ε = 0.499993, ρ = 0.0394441, δ = 0; Laplace, Laplace, Laplace

SELECT city, SKEWNESS(age) AS lean FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: count = COUNT(visits.age - 60), avg = AVG(POWER(visits.age - 60, 3)), avg_2 = AVG(visits.age - 60), var_pop = VAR_POP(visits.age - 60)
--> after: computed lean
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0576016, δ = 0; Laplace, Laplace

-- Many columns, measured together.
SELECT REGR(cost, age) AS fit FROM visits;
--> accepted
--> values: fit_intercept = REGR_COEFFICIENT(0, visits.cost, visits.age), fit_age = REGR_COEFFICIENT(1, visits.cost, visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT REGR(cost, age, age * age) FROM visits WHERE age > 18;
--> accepted
--> values: intercept = REGR_COEFFICIENT(0, visits.cost, visits.age, visits.age * visits.age), x1 = REGR_COEFFICIENT(1, visits.cost, visits.age, visits.age * visits.age), x2 = REGR_COEFFICIENT(2, visits.cost, visits.age, visits.age * visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT city, CORR_MATRIX(cost, age, age * age) AS r FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: r_x0_x1 = CORR_OF(0, visits.cost, visits.age, visits.age * visits.age), r_x0_x2 = CORR_OF(1, visits.cost, visits.age, visits.age * visits.age), r_x1_x2 = CORR_OF(2, visits.cost, visits.age, visits.age * visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT REGR(cost) FROM visits;
--> refused Q33

SELECT REGR(cost, age) + 1 FROM visits;
--> refused Q33

SELECT REGR(cost, city) FROM visits;
--> refused Q33

SELECT REGR(cost, income) FROM visits;
--> refused Q1

SELECT COVAR_MATRIX(cost, age), MEANS(cost, age) FROM visits;
--> accepted
--> values: cost_cost = COVAR_OF(0, visits.cost, visits.age), cost_age = COVAR_OF(1, visits.cost, visits.age), age_age = COVAR_OF(2, visits.cost, visits.age), cost = MEAN_OF(0, visits.cost, visits.age), age = MEAN_OF(1, visits.cost, visits.age)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT COVAR_OF(3, cost, age) FROM visits;
--> refused Q33

SELECT AVG(cost, contribution_bounds => AUTO) AS m FROM visits;
--> accepted
--> values: m = AVG(visits.cost, bounds => AUTO)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.0349946, δ = 0; ClippedSums

SELECT CORR_OF(3, cost, age) FROM visits;
--> refused Q33
