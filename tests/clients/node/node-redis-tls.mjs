// node-redis over TLS.

import { createClient } from "redis";

import { run } from "./secure.mjs";

await run(async ({ host, port, protocol, username, password, tls }, report) => {
  const socket = { host, port, tls: true, ...tls, reconnectStrategy: false };
  const redis = createClient({ RESP: protocol, username, password, socket });
  redis.on("error", report);
  await redis.connect();
  return (command) => redis.sendCommand(command);
});
