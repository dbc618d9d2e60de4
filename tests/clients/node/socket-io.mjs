// Two servers of Socket.IO whose adapters pass on by a stream what is for clients of the other one.
//
//     node socket-io.mjs PORT PROTOCOL
//
// What happens is printed, a line of JSON at a time.

import { once } from "node:events";

import { createAdapter } from "@socket.io/redis-streams-adapter";
import { createClient } from "redis";
import { Server } from "socket.io";
import { io as connect } from "socket.io-client";

const [port, RESP] = process.argv.slice(2).map(Number);

function tell(...values) {
  process.stdout.write(JSON.stringify(values) + "\n");
}

async function until(holds) {
  while (!(await holds())) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

class Node {
  async start() {
    this.redis = await createClient({ RESP, socket: { port } }).connect();
    this.io = new Server(0, { adapter: createAdapter(this.redis), connectionStateRecovery: {} });
    this.io.on("connection", (socket) => socket.join("packers"));
    this.io.on("told", (text, answer) => answer(`${text} heard`));
    return this;
  }

  // A client that has joined the room.
  async client() {
    const { port } = this.io.httpServer.address();
    const socket = connect(`http://127.0.0.1:${port}`, {
      transports: ["websocket"],
      reconnection: false,
    });
    await once(socket, "connect");
    return socket;
  }

  async close() {
    await this.io.close();
    await this.redis.close();
  }
}

const here = await new Node().start();
const there = await new Node().start();
const socket = await there.client();

// Each server knows the other one's clients, and waits for what they and it answer.
await until(async () => (await here.io.of("/").adapter.serverCount()) === 2);
tell("sockets", (await here.io.in("packers").fetchSockets()).length);
tell("servers", await here.io.serverSideEmitWithAck("told", "pen"));

socket.on("pack", (item, answer) => answer?.(`${item} packed`));
tell("clients", await here.io.to("packers").timeout(20_000).emitWithAck("pack", "pen"));

// A client that was away is told what came after the last event that it has seen, if its session is found.
here.io.to("packers").emit("note", "ink");
tell("note", (await once(socket, "note"))[0]);
const away = once(socket, "disconnect");
socket.io.engine.close();
await away;
await until(async () => (await there.redis.keys("sio:session:*")).length > 0);
here.io.to("packers").emit("note", "paper");
const missed = once(socket, "note");
socket.connect();
await once(socket, "connect");
tell("recovered", socket.recovered, (await missed)[0]);

socket.close();
await here.close();
await there.close();
// The timer of the answers, which have come, is still there.
process.exit();
