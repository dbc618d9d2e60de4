// The story with valkey-glide.

import { Batch, GlideClient, InfBoundary, ProtocolVersion } from "@valkey/valkey-glide";

import { run } from "./story.mjs";

const PATIENCE_MS = 60_000;

function entries(rows) {
  return Object.entries(rows).map(([id, pairs]) => [id, Object.fromEntries(pairs)]);
}

class Client {
  constructor(glide) {
    this.glide = glide;
  }

  create() {
    return this.glide.xgroupCreate("orders", "packers", "0", { mkStream: true });
  }

  add(added) {
    const transaction = new Batch(true);
    for (const [id, fields] of added) {
      transaction.xadd("orders", Object.entries(fields), { id });
    }
    return this.glide.exec(transaction, true);
  }

  async take(consumer, count, block) {
    const from = { orders: ">" };
    const [{ value }] = await this.glide.xreadgroup("packers", consumer, from, { count, block });
    return entries(value);
  }

  acknowledge(id) {
    return this.glide.xack("orders", "packers", [id]);
  }

  async pending() {
    const [count, first, last, owners] = await this.glide.xpending("orders", "packers");
    const counts = owners.map(([name, pending]) => [name, Number(pending)]);
    return [count, first, last, Object.fromEntries(counts)];
  }

  async claim(consumer) {
    const [, rows] = await this.glide.xautoclaim("orders", "packers", consumer, 0, "0");
    return entries(rows);
  }

  async look() {
    const [group] = await this.glide.xinfoGroups("orders");
    const consumers = await this.glide.xinfoConsumers("orders", "packers");
    const rows = await this.glide.xpendingWithOptions("orders", "packers", {
      start: InfBoundary.NegativeInfinity,
      end: InfBoundary.PositiveInfinity,
      count: 10,
    });
    return {
      pending: rows.map(([id, owner, , deliveries]) => [id, owner, deliveries]),
      group,
      consumers: consumers.map(({ name, pending }) => [name, pending]),
      length: await this.glide.xlen("orders"),
    };
  }

  close() {
    this.glide.close();
  }
}

await run(async (port, protocol) => {
  const glide = await GlideClient.createClient({
    addresses: [{ host: "127.0.0.1", port }],
    protocol: protocol === 2 ? ProtocolVersion.RESP2 : ProtocolVersion.RESP3,
    requestTimeout: PATIENCE_MS,
  });
  return new Client(glide);
});
