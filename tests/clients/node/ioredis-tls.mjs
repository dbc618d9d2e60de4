// ioredis over TLS.

import { Redis } from "ioredis";

import { run } from "./secure.mjs";

await run(async (options, report) => {
  const redis = new Redis({ ...options, retryStrategy: null });
  redis.on("error", report);
  return (command) => redis.call(...command);
});
