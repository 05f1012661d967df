-- postgres
SELECT COUNT(*) FROM ratings;
SELECT AVG(stars) FROM ratings;
SELECT device, AVG(stars) AS mean, COUNT(*) AS n FROM ratings GROUP BY device;
SELECT movie_id, COUNT(*) AS n FROM ratings GROUP BY movie_id ORDER BY n DESC;
SELECT m.genre, AVG(r.stars) FROM ratings r JOIN movies m ON m.movie_id = r.movie_id GROUP BY m.genre;
SELECT m.genre, COUNT(*) FROM ratings r JOIN movies m USING (movie_id) WHERE m.year >= 1990 GROUP BY m.genre;
SELECT m.year / 10 AS d, COUNT(*) FROM ratings r JOIN movies m USING (movie_id) GROUP BY d;
--> duckdb: SELECT m.year / 10 AS d, COUNT(*) FROM ratings r JOIN movies m USING (movie_id) GROUP BY d
SELECT u.gender, AVG(r.stars) FROM ratings r JOIN users u ON u.user_id = r.user_id GROUP BY u.gender;
SELECT u.gender, m.genre, COUNT(*) AS n FROM ratings r JOIN users u USING (user_id) JOIN movies m USING (movie_id) GROUP BY 1, 2;
SELECT COUNT(*) FROM users WHERE user_id IN (SELECT user_id FROM ratings WHERE stars = 5);
SELECT COUNT(*) FROM users u WHERE NOT EXISTS (SELECT 1 FROM ratings r WHERE r.user_id = u.user_id AND r.stars < 2);
SELECT COUNT(*) FROM ratings r WHERE r.stars > (SELECT AVG(s.stars) FROM ratings s WHERE s.user_id = r.user_id);
SELECT stars, COUNT(*) FROM ratings GROUP BY stars;
SELECT COUNT(*) FROM ratings WHERE stars >= 4 AND rated_at >= '2022-01-01';
SELECT date_trunc('year', rated_at) AS y, AVG(stars) FROM ratings GROUP BY y ORDER BY y;
SELECT to_char(rated_at, 'YYYY"Q"Q') AS q, COUNT(*) FROM ratings GROUP BY q;
--> duckdb: SELECT strftime(rated_at, '%Y') || 'Q' || quarter(rated_at) AS q, COUNT(*) FROM ratings GROUP BY q
SELECT COUNT(DISTINCT user_id) FROM ratings WHERE device = 'tv';
SELECT COUNT(DISTINCT movie_id) FROM ratings WHERE stars >= 4;
SELECT AVG(n) FROM (SELECT user_id, COUNT(*) AS n FROM ratings GROUP BY user_id) t;
SELECT AVG(mean) FROM (SELECT user_id, AVG(stars) AS mean FROM ratings GROUP BY user_id HAVING COUNT(*) >= 5) t;
WITH per_user AS (SELECT user_id, COUNT(DISTINCT movie_id) AS films FROM ratings GROUP BY user_id) SELECT AVG(films) FROM per_user;
WITH ranked AS (SELECT user_id, stars, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY rated_at) AS n FROM ratings) SELECT n, AVG(stars) FROM ranked WHERE n <= 5 GROUP BY n;
WITH g AS (SELECT user_id, stars - FIRST_VALUE(stars) OVER (PARTITION BY user_id ORDER BY rated_at) AS change FROM ratings) SELECT AVG(change) FROM g;
SELECT COUNT(*) FROM (SELECT user_id, rated_at - LAG(rated_at) OVER (PARTITION BY user_id ORDER BY rated_at) AS gap FROM ratings) t WHERE gap < INTERVAL '1 day';
SELECT COUNT(*) FROM (SELECT user_id, rated_at, LAG(rated_at) OVER (PARTITION BY user_id ORDER BY rated_at) AS prev FROM ratings) t WHERE rated_at - prev < INTERVAL '1 day';
SELECT AVG(EXTRACT(EPOCH FROM rated_at - prev) / 3600) FROM (SELECT user_id, rated_at, LAG(rated_at) OVER (PARTITION BY user_id ORDER BY rated_at) AS prev FROM ratings) t;
SELECT age_group, COUNT(*) FROM (SELECT user_id, CASE WHEN age < 18 THEN 'young' WHEN age < 60 THEN 'adult' ELSE 'old' END AS age_group FROM users) u GROUP BY age_group;
SELECT u.job, COUNT(*) FROM users u GROUP BY u.job;
SELECT job, AVG(age) FROM users WHERE joined > '2016-01-01' GROUP BY job HAVING COUNT(*) > 5;
SELECT COUNT(*) FROM users WHERE AGE(DATE '2020-01-01', joined) > INTERVAL '2 years';
--> duckdb: SELECT COUNT(*) FROM users WHERE joined + INTERVAL 2 YEAR < DATE '2020-01-01'
SELECT EXTRACT(YEAR FROM joined) AS y, EXTRACT(QUARTER FROM joined) AS q, COUNT(*) FROM users GROUP BY 1, 2;
SELECT COUNT(*) FROM ratings r JOIN movies m ON r.movie_id = m.movie_id WHERE m.title LIKE 'Film 1%';
SELECT COUNT(*) FROM ratings WHERE movie_id IN (SELECT movie_id FROM movies WHERE minutes > 120);
SELECT COUNT(*) FROM ratings r WHERE EXISTS (SELECT 1 FROM movies m WHERE m.movie_id = r.movie_id AND m.genre = 'horror');
SELECT SUM(m.minutes) FROM ratings r JOIN movies m ON r.movie_id = m.movie_id WHERE r.device = 'phone';
SELECT m.genre, percentile_cont(0.5) WITHIN GROUP (ORDER BY r.stars) FROM ratings r JOIN movies m USING (movie_id) GROUP BY m.genre;
SELECT corr(r.stars, m.year) FROM ratings r JOIN movies m USING (movie_id);
SELECT COUNT(*) FILTER (WHERE stars >= 4)::numeric / COUNT(*) AS liked FROM ratings;
SELECT device, COUNT(*) FILTER (WHERE stars = 5) AS best, COUNT(*) FILTER (WHERE stars <= 1) AS worst FROM ratings GROUP BY device;
SELECT COUNT(*) FROM ratings r, movies m WHERE r.movie_id = m.movie_id AND m.genre = 'drama';
SELECT COUNT(*) FROM (SELECT DISTINCT user_id, device FROM ratings) d;
SELECT device, COUNT(*) FROM (SELECT DISTINCT user_id, device FROM ratings) d GROUP BY device;
-- duckdb
SELECT device, mean(stars) FROM ratings GROUP BY ALL;
SELECT histogram(stars) FROM ratings;
--> refused
SELECT year(rated_at) AS y, month(rated_at) AS m, count(*) FROM ratings GROUP BY ALL;
SELECT date_part('hour', rated_at) AS h, count(*) FROM ratings GROUP BY h;
SELECT epoch(rated_at) > 1640995200 AS late, count(*) FROM ratings GROUP BY late;
SELECT count(*) FROM ratings WHERE rated_at BETWEEN '2021-01-01' AND '2021-12-31 23:59:59';
SELECT count(*) FROM ratings WHERE rated_at::DATE = '2021-05-05';
SELECT dayofweek(rated_at) AS d, avg(stars) FROM ratings GROUP BY d;
SELECT (stars >= 4) AS liked, count(*) FROM ratings GROUP BY liked;
SELECT avg(stars) FROM ratings WHERE device != 'web';
SELECT round(avg(stars), 1) FROM ratings;
SELECT g.genre, count(r.user_id) FROM (VALUES ('drama'), ('comedy')) AS g(genre) JOIN movies m ON m.genre = g.genre JOIN ratings r ON r.movie_id = m.movie_id GROUP BY g.genre;
SELECT count(*) FROM ratings r JOIN users u ON r.user_id = u.user_id AND u.age > 40;
SELECT count(*) FROM ratings r LEFT JOIN users u ON r.user_id = u.user_id WHERE u.user_id IS NULL;
SELECT count(*) FROM users NATURAL JOIN ratings;
SELECT count(*) FROM users u FULL OUTER JOIN ratings r USING (user_id);
SELECT avg(c) FROM (SELECT user_id, count(*) OVER (PARTITION BY user_id) AS c FROM ratings);
SELECT avg(best) FROM (SELECT user_id, max(stars) AS best FROM ratings GROUP BY user_id);
SELECT count(*) FROM (SELECT user_id, movie_id, count(*) AS k FROM ratings GROUP BY user_id, movie_id) WHERE k > 1;
SELECT avg(d) FROM (SELECT user_id, date_diff('day', min(rated_at), max(rated_at)) AS d FROM ratings GROUP BY user_id);
SELECT avg(s) FROM (SELECT user_id, avg(stars) OVER (PARTITION BY user_id ORDER BY rated_at ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM ratings);
SELECT count(*) FROM (SELECT * FROM ratings QUALIFY dense_rank() OVER (PARTITION BY user_id ORDER BY stars DESC) = 1);
SELECT device, count(*) FROM (SELECT user_id, device, row_number() OVER (PARTITION BY user_id ORDER BY rated_at DESC) AS rn FROM ratings QUALIFY rn = 1) GROUP BY device;
SELECT avg(x) FROM (SELECT user_id, last_value(stars) OVER (PARTITION BY user_id ORDER BY rated_at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM ratings);
SELECT m.genre, count(r.user_id) FROM movies m LEFT JOIN ratings r ON r.movie_id = m.movie_id GROUP BY m.genre;
SELECT d.device, count(r.user_id) FROM (VALUES ('tv'), ('web')) AS d(device) LEFT JOIN ratings r ON r.device = d.device GROUP BY d.device;
SELECT count(*) FROM ratings, (VALUES (1), (2)) AS two(n);
SELECT k.least, count(*) FROM ratings r CROSS JOIN (VALUES (2), (3), (4)) AS k(least) WHERE r.stars >= k.least GROUP BY k.least;
SELECT m.title, count(*) AS n FROM ratings r JOIN movies m ON m.movie_id = r.movie_id GROUP BY m.title;
SELECT m.year, avg(stars) FROM ratings r JOIN movies m ON m.movie_id = r.movie_id GROUP BY m.year;
-- bigquery
SELECT device, COUNT(*) AS n, AVG(stars) AS mean FROM `films.ratings` GROUP BY device;
SELECT COUNTIF(stars > 3) AS n FROM ratings;
SELECT EXTRACT(YEAR FROM rated_at) AS y, COUNT(*) AS n FROM ratings GROUP BY y;
SELECT DATE_TRUNC(DATE(rated_at), QUARTER) AS q, COUNT(*) AS n FROM ratings GROUP BY q;
--> duckdb: SELECT DATE_TRUNC('quarter', CAST(rated_at AS DATE)) AS q, COUNT(*) FROM ratings GROUP BY q
SELECT AVG(DATE_DIFF(DATE(rated_at), DATE '2020-01-01', DAY)) AS d FROM ratings;
SELECT u.gender, COUNT(DISTINCT r.user_id) AS people FROM ratings AS r INNER JOIN users AS u ON r.user_id = u.user_id GROUP BY u.gender;
SELECT user_id IS NULL AS missing, COUNT(*) AS n FROM ratings GROUP BY missing;
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000000, delta = 1e-9, max_groups_contributed = 3) device, COUNT(*) AS n FROM ratings GROUP BY device;
--> duckdb: SELECT device, COUNT(*) FROM ratings GROUP BY device
SELECT STDDEV_SAMP(stars) AS s, VAR_SAMP(stars) AS v FROM ratings;
SELECT CONCAT(device, '!') AS d, COUNT(*) AS n FROM ratings GROUP BY d;
SELECT COUNT(DISTINCT device) AS devices FROM ratings;
SELECT MOD(movie_id, 3) AS k, COUNT(*) AS n FROM ratings GROUP BY k;
SELECT LENGTH(device) AS k, COUNT(*) AS n FROM ratings GROUP BY k;
-- snowflake
SELECT TOP 3 device, COUNT(*) AS n FROM ratings GROUP BY device ORDER BY n;
SELECT DATEDIFF(day, '2020-01-01', rated_at) AS d, COUNT(*) FROM ratings WHERE rated_at < '2020-02-01' GROUP BY d;
SELECT MONTHNAME(rated_at) AS m, COUNT(*) FROM ratings GROUP BY m;
--> duckdb: SELECT MONTHNAME(rated_at) AS m, COUNT(*) FROM ratings GROUP BY m
SELECT NVL2(device, 'known', 'unknown') AS k, COUNT(*) FROM ratings GROUP BY k;
--> duckdb: SELECT CASE WHEN device IS NOT NULL THEN 'known' ELSE 'unknown' END AS k, COUNT(*) FROM ratings GROUP BY k
SELECT COUNT(*) FROM films.public.ratings WHERE DAYOFWEEKISO(rated_at) >= 6;
--> duckdb: SELECT COUNT(*) FROM ratings WHERE ISODOW(rated_at) >= 6
SELECT IFF(stars >= 4, 1, 0) AS good, COUNT(*) FROM ratings GROUP BY good;
SELECT AVG(stars) FROM ratings WHERE rated_at > DATEADD(year, -1, '2023-12-31'::TIMESTAMP);
SELECT HOUR(rated_at) AS h, COUNT(*) FROM ratings GROUP BY h;
-- duckdb
SELECT m.g, COUNT(*) FROM ratings r JOIN (SELECT movie_id AS id, genre AS g FROM movies WHERE year > 2000) m ON m.id = r.movie_id GROUP BY m.g;
SELECT m.g, COUNT(*) FROM ratings r LEFT JOIN (SELECT movie_id AS id, genre AS g FROM movies WHERE year > 2000) m ON m.id = r.movie_id GROUP BY m.g;
SELECT COUNT(*) FROM ratings r JOIN movies m USING (movie_id) WHERE m.minutes > (SELECT AVG(minutes) FROM movies x WHERE x.genre = m.genre);
SELECT genre, AVG(stars) FROM ratings r JOIN (SELECT movie_id, genre, RANK() OVER (PARTITION BY genre ORDER BY minutes DESC, movie_id) AS k FROM movies) m USING (movie_id) WHERE k <= 3 GROUP BY genre;
-- refused
SELECT user_id, AVG(stars) FROM ratings GROUP BY user_id;
SELECT * FROM ratings WHERE stars = 5;
SELECT ARRAY_AGG(movie_id) FROM ratings;
SELECT COUNT(*) FROM ratings a JOIN ratings b ON a.movie_id = b.movie_id AND a.user_id <> b.user_id;
SELECT COUNT(*) FROM (SELECT *, COUNT(*) OVER (PARTITION BY movie_id) AS k FROM ratings) WHERE k > 5;
