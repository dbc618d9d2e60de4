// A program on BullMQ, told by its environment; see test_queues.py.
//
//     node bullmq.mjs            works
//     node bullmq.mjs ITEM ...   sends items, and prints their results

import { Queue, QueueEvents, Worker } from "bullmq";
import { Redis } from "ioredis";

const { URL: url, NAME, TROUBLE } = process.env;
const items = process.argv.slice(2);
const connection = { url, maxRetriesPerRequest: null };
const book = new Redis(url);

async function pack({ data: { item } }) {
  await book.rpush("said", `${NAME} takes ${item}`);
  if (item === TROUBLE) {
    await new Promise(() => {});
  }
  if (item === "torn" && (await book.incr("torn")) === 1) {
    throw new Error("it is torn");
  }
  await book.rpush("said", `${NAME} packs ${item}`);
  return `packed ${item}`;
}

async function send() {
  const queue = new Queue("orders", { connection });
  const events = new QueueEvents("orders", { connection });
  await events.waitUntilReady();
  const sent = [];
  for (const item of items) {
    sent.push(await queue.add("pack", { item }, { attempts: 2, delay: item === "later" ? 500 : 0 }));
  }
  for (const job of sent) {
    console.log(await job.waitUntilFinished(events, 60_000));
  }
  process.exit();
}

if (items.length) {
  await send();
} else {
  // A job whose worker has not been heard of for a second is given to another one.
  const often = { lockDuration: 1000, stalledInterval: 500 };
  new Worker("orders", pack, { connection, concurrency: 4, ...often });
}
