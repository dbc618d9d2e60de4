// What tests/clients/libraries.py asks of ioredis: `node policies.mjs PORT PROTOCOL`.
//
// Each line of input is [number, connection, method, arguments]: the method of ioredis is called on
// the connection of that name, which is made when it is first named. The answer is a line [number,
// reply], or [number, null, error], whenever it comes.

import { createInterface } from "node:readline";

import { Redis } from "ioredis";

const [port, protocol] = process.argv.slice(2).map(Number);
const connections = new Map();

function connection(name) {
  if (!connections.has(name)) {
    connections.set(name, new Redis({ port, protocol }));
  }
  return connections.get(name);
}

function tell(...values) {
  process.stdout.write(JSON.stringify(values) + "\n");
}

for await (const line of createInterface({ input: process.stdin })) {
  const [number, name, method, args] = JSON.parse(line);
  connection(name)[method](...args).then(
    (reply) => tell(number, reply),
    (error) => tell(number, null, error.message),
  );
}
for (const each of connections.values()) {
  each.disconnect();
}
