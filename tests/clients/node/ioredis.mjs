// The story with ioredis.

import { Redis } from "ioredis";

import { run } from "./story.mjs";

// ["item", "pen"] as { item: "pen" }.
function pairs(flat) {
  const names = flat.filter((_, index) => index % 2 === 0);
  return Object.fromEntries(names.map((name, index) => [name, flat[2 * index + 1]]));
}

function entries(rows) {
  return rows.map(([id, fields]) => [id, pairs(fields)]);
}

class Client {
  constructor(redis) {
    this.redis = redis;
  }

  create() {
    return this.redis.xgroup("CREATE", "orders", "packers", "0", "MKSTREAM");
  }

  async add(added) {
    const transaction = this.redis.multi();
    for (const [id, fields] of added) {
      transaction.xadd("orders", id, ...Object.entries(fields).flat());
    }
    const replies = await transaction.exec();
    return replies.map(([error, id]) => error?.message ?? id);
  }

  async take(consumer, count, block) {
    const request = ["GROUP", "packers", consumer, "COUNT", count, "BLOCK", block];
    const [[, rows]] = await this.redis.xreadgroup(...request, "STREAMS", "orders", ">");
    return entries(rows);
  }

  acknowledge(id) {
    return this.redis.xack("orders", "packers", id);
  }

  async pending() {
    const [count, first, last, owners] = await this.redis.xpending("orders", "packers");
    const counts = owners.map(([name, pending]) => [name, Number(pending)]);
    return [count, first, last, Object.fromEntries(counts)];
  }

  async claim(consumer) {
    const [, rows] = await this.redis.xautoclaim("orders", "packers", consumer, 0, "0");
    return entries(rows);
  }

  async look() {
    const [group] = await this.redis.xinfo("GROUPS", "orders");
    const consumers = await this.redis.xinfo("CONSUMERS", "orders", "packers");
    const rows = await this.redis.xpending("orders", "packers", "-", "+", 10);
    return {
      pending: rows.map(([id, owner, , deliveries]) => [id, owner, deliveries]),
      group: pairs(group),
      consumers: consumers.map(pairs).map(({ name, pending }) => [name, pending]),
      length: await this.redis.xlen("orders"),
    };
  }

  close() {
    return this.redis.quit();
  }
}

await run(async (port, protocol) => new Client(new Redis({ port, protocol })));
