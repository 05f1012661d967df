-- # BigQuery's privacy clause

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-7, privacy_unit_column = patient_id) city, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> spend: epsilon 1, delta 1/10000000
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Groups one person may contribute to.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 10, delta = .01, max_groups_contributed = 2, privacy_unit_column = patient_id) doctor, AVG(cost, contribution_bounds_per_group => (0, 100)) AS mean FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: mean = AVG(visits.cost, contribution_bounds_per_group => (0.0, 100.0))
--> rows: at most 20 of one unit, in 2 groups
--> spend: epsilon 10, delta 1/100
--> price: ε = ∞, ρ = 0.00379633, δ = 0.0000000005; Gaussian, Gaussian

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 10, delta = .01, max_groups_contributed = 2) doctor, SUM(cost, contribution_bounds_per_group => (0, 100)) AS total FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: total = SUM(visits.cost, contribution_bounds_per_group => (0.0, 100.0))
--> rows: at most 20 of one unit, in 2 groups
--> spend: epsilon 10, delta 1/100
--> price: ε = ∞, ρ = 0.00379633, δ = 0.0000000005; Gaussian, Gaussian

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 10, delta = .01, max_groups_contributed = 2) doctor, COUNT(*, contribution_bounds_per_group => (0, 5)) AS n FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: n = COUNT(*, contribution_bounds_per_group => (0.0, 5.0))
--> rows: at most 20 of one unit, in 2 groups
--> spend: epsilon 10, delta 1/100
--> price: ε = ∞, ρ = 0.00379633, δ = 0.0000000005; Gaussian, Gaussian

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000, delta = .01) doctor, COUNT(note, contribution_bounds_per_group => (0, 3)) AS notes FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: notes = COUNT(visits.note, contribution_bounds_per_group => (0.0, 3.0))
--> rows: at most 20 of one unit
--> spend: epsilon 1000, delta 1/100
--> price: ε = ∞, ρ = 0.00379633, δ = 0.0000000005; Gaussian, Gaussian

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 10, delta = .01, max_groups_contributed = 1) doctor, PERCENTILE_CONT(cost, 0.5, contribution_bounds_per_row => (0, 500)) AS middle FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: middle = QUANTILE_CONT(visits.cost, '1/2', contribution_bounds_per_row => (0.0, 500.0))
--> rows: at most 20 of one unit, in 1 groups
--> spend: epsilon 10, delta 1/100
--> price: ε = 0.499993, ρ = 0.0260114, δ = 0.000000001; Selection, KeyRelease

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 10, delta = .01) doctor, APPROX_QUANTILES(cost, 2, contribution_bounds_per_row => (1, 10)) AS halves FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: halves = QUANTILE_CONT(visits.cost, '0', '1/2', '1', contribution_bounds_per_row => (1.0, 10.0))
--> rows: at most 20 of one unit
--> spend: epsilon 10, delta 1/100
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Selection, Gaussian

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 10, delta = .01) doctor, VAR_POP(cost, contribution_bounds_per_row => (0, 100)) AS v, STDDEV_POP(cost, contribution_bounds_per_row => (0, 100)) AS s FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: v = VAR_POP(visits.cost, contribution_bounds_per_row => (0.0, 100.0)), s = STDDEV_POP(visits.cost, contribution_bounds_per_row => (0.0, 100.0))
--> rows: at most 20 of one unit
--> spend: epsilon 10, delta 1/100
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

-- Bounds by name make a column without declared bounds usable.
SELECT SUM(income, contribution_bounds_per_row => (0, 100000)) AS total FROM visits;
--> accepted
--> values: total = SUM(visits.income, contribution_bounds_per_row => (0.0, 100000.0))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT SUM(income, contribution_bounds_per_group => (0, 100000)) AS total FROM visits;
--> accepted
--> values: total = SUM(visits.income, contribution_bounds_per_group => (0.0, 100000.0))
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Who one person is, the curator says.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-7, privacy_unit_column = doctor) COUNT(*) AS n FROM visits;
--> refused Q28

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0) COUNT(*) FROM visits;
--> refused Q28

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 2) COUNT(*) FROM visits;
--> refused Q28

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, epsilon = 2) COUNT(*) FROM visits;
--> refused Q28

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, color = 'red') COUNT(*) FROM visits;
--> refused Q28

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 1.5) COUNT(*) FROM visits;
--> refused Q28

SELECT AVG(n) FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS s;
--> refused Q28

SELECT SUM(cost, contribution_bounds_per_group => (100, 0)) FROM visits;
--> refused Q33

SELECT SUM(cost, contribution_bounds_per_group => (0, 100), contribution_bounds_per_row => (0, 9)) FROM visits;
--> refused Q33

SELECT SUM(cost, contribution_bounds_per_group => 100) FROM visits;
--> refused Q33

SELECT CORR(cost, age, contribution_bounds_per_row => (0, 1)) FROM visits;
--> refused Q33

SELECT SUM(cost, report_format => 'PROTO') FROM visits;
--> refused Q33

SELECT WITH ANONYMIZATION OPTIONS(epsilon = 1) ANON_COUNT(*) FROM visits;
--> refused Q2

-- Written outside the clause, this is only a function nobody knows.
SELECT ANON_COUNT(*) FROM visits;
--> refused Q32

-- Groups of few people, left out by their noisy number: the one more that is measured.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-7, min_privacy_units_per_group = 20) city, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*), count_units = COUNT(DISTINCT visits.patient_id)
--> after: HAVING
--> rows: at most 20 of one unit
--> spend: epsilon 1, delta 1/10000000
--> price: ε = 0.499993, ρ = 0.0693546, δ = 0; Laplace, Laplace

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-7, k_threshold = 20) doctor, COUNT(*) AS n FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: n = COUNT(*), count_units = COUNT(DISTINCT visits.patient_id)
--> after: HAVING
--> rows: at most 20 of one unit
--> spend: epsilon 1, delta 1/10000000
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

-- Groups are public because they are declared.
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, group_selection_strategy = PUBLIC_GROUPS) city, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> spend: epsilon 1
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, group_selection_strategy = PUBLIC_GROUPS) doctor, COUNT(*) AS n FROM visits GROUP BY doctor;
--> refused Q28

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, min_privacy_units_per_group = 2, k_threshold = 2) city, COUNT(*) AS n FROM visits GROUP BY city;
--> refused Q28

SELECT AVG(city, contribution_bounds_per_group => (0, 4)) FROM visits;
--> refused Q33

-- Snowflake's: every number has its interval, and the account says what is left.
SELECT city, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS low FROM visits GROUP BY city;
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS n FROM visits AS visits GROUP BY visits.city
--> computed: SELECT city AS city, n AS n, low.n AS low FROM intervals.1
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, DP_INTERVAL_LOW(city) AS low, COUNT(*) AS n FROM visits GROUP BY city;
--> refused Q9

-- The account tells what is left, free.
SELECT * FROM ESTIMATE_REMAINING_DP_AGGREGATES('visits');
--> accepted
--> computed: SELECT * FROM account.visits AS ESTIMATE_REMAINING_DP_AGGREGATES

SELECT * FROM ESTIMATE_REMAINING_DP_AGGREGATES('cities');
--> refused Q6
