// The story with node-redis.

import { createClient } from "redis";

import { run } from "./story.mjs";

function entries(messages) {
  return messages.map(({ id, message }) => [id, message]);
}

class Client {
  constructor(redis) {
    this.redis = redis;
  }

  create() {
    return this.redis.xGroupCreate("orders", "packers", "0", { MKSTREAM: true });
  }

  add(added) {
    const transaction = this.redis.multi();
    for (const [id, fields] of added) {
      transaction.xAdd("orders", id, fields);
    }
    return transaction.exec();
  }

  async take(consumer, COUNT, BLOCK) {
    const from = { key: "orders", id: ">" };
    const [{ messages }] = await this.redis.xReadGroup("packers", consumer, from, { COUNT, BLOCK });
    return entries(messages);
  }

  acknowledge(id) {
    return this.redis.xAck("orders", "packers", id);
  }

  async pending() {
    const summary = await this.redis.xPending("orders", "packers");
    const owners = summary.consumers.map(({ name, deliveriesCounter }) => [name, deliveriesCounter]);
    return [summary.pending, summary.firstId, summary.lastId, Object.fromEntries(owners)];
  }

  async claim(consumer) {
    const reply = await this.redis.xAutoClaim("orders", "packers", consumer, 0, "0");
    return entries(reply.messages);
  }

  async look() {
    const [group] = await this.redis.xInfoGroups("orders");
    const consumers = await this.redis.xInfoConsumers("orders", "packers");
    const rows = await this.redis.xPendingRange("orders", "packers", "-", "+", 10);
    return {
      pending: rows.map(({ id, consumer, deliveriesCounter }) => [id, consumer, deliveriesCounter]),
      group,
      consumers: consumers.map(({ name, pending }) => [name, pending]),
      length: await this.redis.xLen("orders"),
    };
  }

  close() {
    return this.redis.close();
  }
}

await run(async (port, RESP) => {
  const redis = createClient({ RESP, socket: { port } });
  return new Client(await redis.connect());
});
