# The story with redis-rb: redis-rb.rb PORT PROTOCOL create | add ID ... | ann | bob

require "json"
require "redis"

ITEMS = { "1-0" => { item: "pen" }, "2-0" => { item: "ink" }, "3-0" => { item: "paper" } }
PATIENCE_MS = 20_000

def tell(value)
  puts JSON.generate(value)
  $stdout.flush
end

class Story
  def initialize(port)
    @redis = Redis.new(port: port)
  end

  def create
    tell @redis.xgroup(:create, "orders", "packers", "0", mkstream: true)
  end

  def add(*ids)
    tell(@redis.multi { |transaction| ids.each { |id| transaction.xadd("orders", ITEMS[id], id: id) } })
  end

  # Waits for an entry and acknowledges it; then waits for two and is killed with them in its hands.
  def ann
    first = take("ann", 1, PATIENCE_MS)
    tell first
    tell @redis.xack("orders", "packers", first[0][0])
    tell take("ann", 2, PATIENCE_MS)
    take("ann", 1, 0)
  end

  # Finds what ann has left, and looks at everything.
  def bob
    left = @redis.xpending("orders", "packers")
    owners = left["consumers"].transform_values(&:to_i)
    tell [left["size"], left["min_entry_id"], left["max_entry_id"], owners]
    tell @redis.xautoclaim("orders", "packers", "bob", 0, "0")["entries"]
    tell @redis.xack("orders", "packers", "2-0")
    look
  end

  private

  def take(consumer, count, block)
    @redis.xreadgroup("packers", consumer, "orders", ">", count: count, block: block)["orders"]
  end

  def look
    rows = @redis.xpending("orders", "packers", "-", "+", 10)
    tell({
      pending: rows.map { |row| row.values_at("entry_id", "consumer", "count") },
      group: @redis.xinfo(:groups, "orders")[0],
      consumers: @redis.xinfo(:consumers, "orders", "packers").map { |row| row.values_at("name", "pending") },
      length: @redis.xlen("orders"),
    })
  end
end

port, _, part, *rest = ARGV
Story.new(port.to_i).public_send(part, *rest)
