// The parts of the story that tests/clients/story.py tells, for any client of Node.
//
//     node ioredis.mjs PORT PROTOCOL create | add ID ... | ann | bob
//
// A program gives an object with a function for each command; what they return is made one shape
// here. What a part has seen is printed, a line of JSON at a time.

const ITEMS = { "1-0": { item: "pen" }, "2-0": { item: "ink" }, "3-0": { item: "paper" } };
const PATIENCE_MS = 20_000;

function tell(value) {
  process.stdout.write(JSON.stringify(value) + "\n");
}

// Waits for an entry and acknowledges it; then waits for two and is killed with them in its hands.
async function ann(client) {
  const [[id, fields]] = await client.take("ann", 1, PATIENCE_MS);
  tell([[id, fields]]);
  tell(await client.acknowledge(id));
  tell(await client.take("ann", 2, PATIENCE_MS));
  await client.take("ann", 1, 0);
}

// Finds what ann has left, and looks at everything.
async function bob(client) {
  tell(await client.pending());
  tell(await client.claim("bob"));
  tell(await client.acknowledge("2-0"));
  tell(await client.look());
}

const PARTS = {
  ann,
  bob,
  create: async (client) => tell(await client.create()),
  add: async (client, ...ids) => tell(await client.add(ids.map((id) => [id, ITEMS[id]]))),
};

// Runs the part that the command line names with a client that `connect(port, protocol)` makes.
export async function run(connect) {
  const [port, protocol, part, ...rest] = process.argv.slice(2);
  const client = await connect(Number(port), Number(protocol));
  await PARTS[part](client, ...rest);
  await client.close();
}
