SELECT
  carrier,
  window.start AS hour,
  count(*) AS flights,
  sum(dep_delay) AS total_delay,
  max(dep_delay) AS longest_delay,
  count_if(dep_delay > 15) AS late
FROM entries
GROUP BY carrier, window(scheduled, '1 hour')
