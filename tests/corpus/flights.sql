-- postgres
SELECT COUNT(*) FROM bookings;
SELECT carrier, COUNT(*) AS n FROM bookings GROUP BY carrier;
SELECT carrier, cabin, AVG(price) FROM bookings GROUP BY carrier, cabin;
SELECT origin, COUNT(*) FROM bookings GROUP BY origin ORDER BY 2 DESC LIMIT 3;
SELECT dest, SUM(seats) AS seats FROM bookings WHERE flight_date >= '2024-06-01' GROUP BY dest;
SELECT date_trunc('month', flight_date)::date AS m, SUM(price) FROM bookings GROUP BY m;
SELECT COUNT(*) FROM bookings WHERE delay > 60;
SELECT AVG(delay) FROM bookings WHERE origin = 'CDG' AND dest <> 'CDG';
SELECT b.carrier, COUNT(DISTINCT b.customer_id) FROM bookings b GROUP BY b.carrier;
SELECT c.tier, AVG(b.price * b.seats) AS spend FROM bookings b JOIN customers c USING (customer_id) GROUP BY c.tier;
SELECT c.country, COUNT(*) FROM customers c WHERE c.customer_id IN (SELECT customer_id FROM bookings WHERE cabin = 'business') GROUP BY c.country;
SELECT COUNT(*) FROM customers c WHERE (SELECT COUNT(*) FROM bookings b WHERE b.customer_id = c.customer_id) >= 3;
SELECT a.country, COUNT(*) FROM bookings b JOIN airports a ON b.origin = a.iata GROUP BY a.country;
SELECT a.city, AVG(b.price) FROM bookings AS b INNER JOIN airports AS a ON a.iata = b.dest GROUP BY a.city;
SELECT o.country, d.country AS to_country, COUNT(*) AS n FROM bookings b JOIN airports o ON b.origin = o.iata JOIN airports d ON b.dest = d.iata GROUP BY 1, 2;
SELECT COUNT(*) FROM bookings WHERE origin IN (SELECT iata FROM airports WHERE country = 'FR');
SELECT COUNT(*) FROM bookings WHERE EXISTS (SELECT 1 FROM airports WHERE iata = origin AND country = 'FR');
SELECT COUNT(*) FROM bookings WHERE NOT EXISTS (SELECT * FROM airports WHERE iata = dest);
SELECT k.name, COUNT(*) FROM bookings b JOIN carriers k ON k.carrier = b.carrier GROUP BY k.name;
SELECT EXTRACT(EPOCH FROM AVG(price)) FROM bookings;
--> refused
SELECT AVG(EXTRACT(EPOCH FROM (arrived - departed)) / 60) AS minutes FROM bookings;
SELECT COUNT(*) FROM bookings WHERE arrived - departed < INTERVAL '2 hours';
SELECT COUNT(*) FROM bookings WHERE departed::time > '12:00';
SELECT carrier, COUNT(*) AS n FROM bookings GROUP BY carrier ORDER BY n DESC FETCH FIRST 2 ROWS ONLY;
SELECT COUNT(*) FROM (SELECT customer_id FROM bookings WHERE cabin = 'business' EXCEPT SELECT customer_id FROM bookings WHERE carrier = 'BA') x;
SELECT COUNT(*) FROM (SELECT customer_id FROM bookings WHERE cabin = 'business' INTERSECT SELECT customer_id FROM customers WHERE tier = 'gold') x;
SELECT COUNT(*) FROM bookings WHERE CAST(departed AS TIME) BETWEEN '06:30' AND TIME '09:00:00';
SELECT COUNT(*) FROM bookings WHERE EXTRACT(ISODOW FROM flight_date) IN (6, 7);
SELECT to_char(flight_date, 'Dy') AS d, COUNT(*) FROM bookings GROUP BY d;
--> duckdb: SELECT strftime(flight_date, '%a') AS d, COUNT(*) FROM bookings GROUP BY d
SELECT COUNT(*) FROM (SELECT customer_id, flight_date - LAG(flight_date) OVER (PARTITION BY customer_id ORDER BY departed) AS gap FROM bookings) g WHERE gap < 30;
SELECT AVG(price) FROM (SELECT DISTINCT ON (customer_id) price FROM bookings ORDER BY customer_id, departed) f;
WITH trips AS (SELECT customer_id, COUNT(*) AS n, SUM(price) AS total FROM bookings GROUP BY customer_id) SELECT n, AVG(total) FROM trips GROUP BY n;
WITH first AS (SELECT customer_id, MIN(flight_date) AS d FROM bookings GROUP BY customer_id) SELECT EXTRACT(MONTH FROM d) AS m, COUNT(*) FROM first GROUP BY m;
SELECT CASE WHEN delay <= 0 THEN 'on time' WHEN delay <= 30 THEN 'late' ELSE 'very late' END AS status, COUNT(*) FROM bookings GROUP BY 1;
SELECT width_bucket(price, 0, 1000, 10) AS b, COUNT(*) FROM bookings GROUP BY b;
--> duckdb: SELECT CASE WHEN price < 0 THEN 0 WHEN price >= 1000 THEN 11 ELSE FLOOR(price / 100) + 1 END AS b, COUNT(*) FROM bookings GROUP BY b
SELECT width_bucket(delay, -30, 90, 8) AS b, AVG(price) FROM bookings GROUP BY b;
--> duckdb: SELECT CASE WHEN delay < -30 THEN 0 WHEN delay >= 90 THEN 9 ELSE FLOOR((delay + 30) / 15) + 1 END AS b, AVG(price) FROM bookings GROUP BY b
SELECT GREATEST(delay, 0) AS d, COUNT(*) FROM bookings WHERE delay < 5 GROUP BY d;
SELECT ROUND(price / 100) * 100 AS p, COUNT(*) FROM bookings WHERE price < 500 GROUP BY p;
SELECT COUNT(*) FROM bookings WHERE price BETWEEN 100 AND 200 AND NOT cabin = 'business';
SELECT cabin, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY price) AS q1 FROM bookings GROUP BY cabin;
SELECT COUNT(*)::float / COUNT(DISTINCT customer_id) AS per_person FROM bookings;
SELECT regr_slope(price, delay), corr(price, delay) FROM bookings;
SELECT stddev_pop(delay), var_pop(delay) FROM bookings;
SELECT COUNT(*) FROM customers WHERE since < DATE '2024-01-01' - INTERVAL '5 years';
SELECT c.tier, COUNT(b.carrier) FROM bookings b RIGHT OUTER JOIN customers c ON b.customer_id = c.customer_id GROUP BY c.tier;
SELECT COUNT(*) FROM customers c LEFT JOIN bookings b ON b.customer_id = c.customer_id AND b.cabin = 'business' WHERE b.customer_id IS NULL;
SELECT COUNT(*) FROM (bookings b JOIN customers c ON b.customer_id = c.customer_id) WHERE c.age > 40;
SELECT c.tier, SUM(b.price) FROM customers c, bookings b WHERE b.customer_id = c.customer_id AND c.country = 'FR' GROUP BY c.tier;
SELECT FLOOR(age / 10.0) * 10 AS decade, COUNT(*) FROM customers GROUP BY decade;
SELECT AVG(most) FROM (SELECT customer_id, MAX(price) - MIN(price) AS most FROM bookings GROUP BY customer_id) AS s;
-- duckdb
SELECT carrier, cabin, count(*) FROM bookings GROUP BY ALL ORDER BY ALL;
SELECT time_bucket(INTERVAL '1 month', flight_date) AS m, count(*) FROM bookings GROUP BY m ORDER BY ALL DESC;
SELECT time_bucket(INTERVAL '7 days', flight_date) AS w, count(*) FROM bookings GROUP BY w;
SELECT count(*) FROM airlines.main.bookings AS b NATURAL JOIN customers WHERE tier = 'gold';
SELECT age // 10 * 10 AS decade, count(*) FROM customers GROUP BY decade;
SELECT origin, count(*) FROM main.bookings GROUP BY ALL;
SELECT count(*) FROM bookings WHERE datediff('minute', departed, arrived) > 300;
SELECT hour(departed) AS h, avg(delay) FROM bookings GROUP BY h ORDER BY h;
SELECT weekofyear(flight_date) AS w, count(*) FROM bookings GROUP BY w;
SELECT strftime('%Y-%m', flight_date) AS m, count(*) FROM bookings GROUP BY m;
SELECT flight_date + 1 AS next, count(*) FROM bookings WHERE flight_date < '2024-01-10' GROUP BY next;
SELECT flight_date - INTERVAL 1 MONTH < DATE '2024-03-15' AS early, count(*) FROM bookings GROUP BY early;
SELECT count(*) FROM bookings WHERE departed >= DATE '2024-05-01' AND departed < DATE '2024-05-01' + INTERVAL 1 MONTH;
SELECT make_date(2024, 6, 1) < flight_date AS late, count(*) FROM bookings GROUP BY late;
SELECT carrier, quantile_cont(price, [0.25, 0.75]) AS q FROM bookings GROUP BY carrier;
SELECT count(*) FILTER (WHERE delay > 15) / count(*) AS share FROM bookings;
SELECT avg(x) FROM (SELECT customer_id, price - lag(price, 1, 0) OVER (PARTITION BY customer_id ORDER BY departed) AS x FROM bookings);
SELECT count(*) FROM (SELECT customer_id, rank() OVER (PARTITION BY customer_id ORDER BY price DESC) AS r FROM bookings) WHERE r = 1;
SELECT avg(m) FROM (SELECT customer_id, max(price) OVER (PARTITION BY customer_id) AS m FROM bookings);
SELECT cabin, count(*) FROM (SELECT customer_id, cabin, row_number() OVER w AS n FROM bookings WINDOW w AS (PARTITION BY customer_id ORDER BY departed)) WHERE n <= 2 GROUP BY cabin;
SELECT avg(s) FROM (SELECT customer_id, sum(price) OVER (PARTITION BY customer_id, carrier ORDER BY departed) AS s FROM bookings);
SELECT count(*) FROM (SELECT customer_id FROM bookings WHERE carrier = 'AF' UNION SELECT customer_id FROM bookings WHERE carrier = 'KL');
SELECT count(*) FROM (SELECT customer_id, origin FROM bookings UNION ALL SELECT customer_id, dest FROM bookings) AS airports_used;
SELECT count(DISTINCT dest) FROM bookings;
SELECT substring(origin, 1, 1) AS letter, count(*) FROM bookings GROUP BY letter;
SELECT starts_with(origin, 'L') AS l, count(*) FROM bookings GROUP BY l;
SELECT right(origin, 1) AS letter, count(*) FROM bookings GROUP BY letter;
SELECT replace(origin, 'C', 'K') AS o, count(*) FROM bookings GROUP BY o;
SELECT upper(cabin) AS c, count(*) FROM bookings GROUP BY c;
SELECT a.city, count(b.customer_id) FROM airports a LEFT JOIN bookings b ON b.origin = a.iata GROUP BY a.city;
SELECT x.cabin, count(*) FROM bookings b JOIN (VALUES ('economy', 1), ('business', 2)) AS x(cabin, rank) ON x.cabin = b.cabin GROUP BY x.cabin;
SELECT count(*) FROM bookings CROSS JOIN carriers;
-- bigquery
SELECT carrier, COUNT(*) AS n FROM `air.bookings` GROUP BY carrier;
SELECT AVG(DATETIME_DIFF(arrived, departed, MINUTE)) AS m FROM bookings;
--> duckdb: SELECT AVG(DATE_DIFF('minute', departed, arrived)) FROM bookings
SELECT EXTRACT(DATE FROM departed) AS d, COUNT(*) AS n FROM bookings WHERE departed < '2024-01-15' GROUP BY d;
--> duckdb: SELECT CAST(departed AS DATE) AS d, COUNT(*) FROM bookings WHERE departed < '2024-01-15' GROUP BY d
SELECT FORMAT_TIMESTAMP('%H', departed) AS h, COUNT(*) AS n FROM bookings GROUP BY h;
--> duckdb: SELECT STRFTIME(departed, '%H') AS h, COUNT(*) FROM bookings GROUP BY h
SELECT TIMESTAMP_TRUNC(departed, DAY) AS d, COUNT(*) AS n FROM bookings WHERE departed < '2024-02-01' GROUP BY d;
--> duckdb: SELECT DATE_TRUNC('day', departed) AS d, COUNT(*) FROM bookings WHERE departed < '2024-02-01' GROUP BY d
SELECT COUNT(*) AS n FROM bookings WHERE flight_date > DATE_SUB(DATE '2024-12-31', INTERVAL 3 MONTH);
SELECT COUNT(*) AS n FROM bookings WHERE flight_date > DATE_SUB(DATE '2024-12-31', INTERVAL 2 WEEK);
SELECT SUM(IF(delay > 30, 1, 0)) AS late FROM bookings;
SELECT IFNULL(cabin, 'none') AS c, COUNT(*) AS n FROM bookings GROUP BY c;
SELECT APPROX_COUNT_DISTINCT(dest) AS d FROM bookings;
--> duckdb: SELECT COUNT(DISTINCT dest) FROM bookings
SELECT SAFE_CAST(seats AS FLOAT64) AS s, COUNT(*) AS n FROM bookings GROUP BY s;
--> duckdb: SELECT CAST(seats AS DOUBLE) AS s, COUNT(*) FROM bookings GROUP BY s
SELECT CAST(seats AS STRING) AS s, COUNT(*) AS n FROM bookings GROUP BY s;
SELECT cabin, COUNT(*) AS n FROM UNNEST(['economy', 'business']) AS cabin LEFT JOIN bookings USING (cabin) GROUP BY cabin;
--> duckdb: SELECT cabin, COUNT(*) FROM bookings GROUP BY cabin
SELECT LOGICAL_OR(delay > 100) FROM bookings;
--> refused
-- snowflake
SELECT DATE_TRUNC(month, flight_date) AS m, COUNT(*) FROM bookings GROUP BY m;
--> duckdb: SELECT date_trunc('month', flight_date) AS m, COUNT(*) FROM bookings GROUP BY m
SELECT TIME_SLICE(departed, 1, 'QUARTER') AS q, COUNT(*) FROM bookings GROUP BY q;
--> duckdb: SELECT date_trunc('quarter', departed) AS q, COUNT(*) FROM bookings GROUP BY q
SELECT carrier, COUNT_IF(delay > 30) AS late FROM air.public.bookings GROUP BY carrier;
SELECT COUNT(*) FROM bookings WHERE TIMESTAMPDIFF('hour', departed, arrived) >= 5;
--> duckdb: SELECT COUNT(*) FROM bookings WHERE DATE_DIFF('hour', departed, arrived) >= 5
SELECT TO_CHAR(flight_date, 'YYYY-MM') AS m, COUNT(*) FROM bookings GROUP BY m;
--> duckdb: SELECT strftime(flight_date, '%Y-%m') AS m, COUNT(*) FROM bookings GROUP BY m
SELECT DATE_PART(month, flight_date) AS m, COUNT(*) FROM bookings GROUP BY m;
SELECT NVL(cabin, 'none') AS c, COUNT(*) FROM bookings GROUP BY c;
SELECT DECODE(carrier, 'AF', 'french', 'KL', 'dutch', 'other') AS k, COUNT(*) FROM bookings GROUP BY k;
--> duckdb: SELECT CASE carrier WHEN 'AF' THEN 'french' WHEN 'KL' THEN 'dutch' ELSE 'other' END AS k, COUNT(*) FROM bookings GROUP BY k
SELECT ZEROIFNULL(delay) AS d, COUNT(*) FROM bookings WHERE delay < 3 GROUP BY d;
--> duckdb: SELECT COALESCE(delay, 0) AS d, COUNT(*) FROM bookings WHERE delay < 3 GROUP BY d
SELECT ADD_MONTHS(flight_date, 1) > '2024-06-01' AS k, COUNT(*) FROM bookings GROUP BY k;
--> duckdb: SELECT flight_date + INTERVAL 1 MONTH > DATE '2024-06-01' AS k, COUNT(*) FROM bookings GROUP BY k
SELECT MEDIAN(price) FROM bookings;
SELECT COUNT(*) FROM bookings WHERE origin RLIKE 'L.*';
--> duckdb: SELECT COUNT(*) FROM bookings WHERE REGEXP_MATCHES(origin, 'L.*')
-- refused
SELECT customer_id FROM bookings LIMIT 10;
SELECT LISTAGG(origin) FROM bookings;
SELECT COUNT(*) FROM bookings TABLESAMPLE (10 PERCENT);
SELECT COUNT(*) FROM bookings b JOIN bookings c ON b.flight_date = c.flight_date;
SELECT COUNT(*) FROM (SELECT customer_id, SUM(price) OVER (ORDER BY departed) AS s FROM bookings) WHERE s > 100;
