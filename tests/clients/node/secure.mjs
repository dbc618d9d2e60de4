// What a client of Node does over TLS, as tests/clients/test_node_tls.py drives it.
//
//     node ioredis-tls.mjs HOST PORT PROTOCOL USER PASSWORD AUTHORITY [CERTIFICATE KEY]
//
// Each command is printed with its reply or its error, a line of JSON at a time; so is each error
// that the client reports besides.

import { readFileSync } from "node:fs";

const COMMANDS = [
  ["ACL", "WHOAMI"],
  ["XADD", "orders", "1-1", "item", "tea"],
  ["XLEN", "orders"],
  ["GET", "orders"],
  ["XADD", "prices", "1-1", "tea", "4"],
];

function tell(...values) {
  process.stdout.write(JSON.stringify(values) + "\n");
}

// `connect(options, report)` gives a function that sends a command, or throws what went wrong;
// `report` takes errors. The first of these ends the program.
export async function run(connect) {
  const [host, port, protocol, username, password, ca, cert, key] = process.argv.slice(2);
  const tls = { ca: readFileSync(ca) };
  if (cert) {
    tls.cert = readFileSync(cert);
    tls.key = readFileSync(key);
  }
  const report = (error) => {
    tell("error", error.code ?? null, error.message);
    process.exit(1);
  };
  const options = { host, port: Number(port), protocol: Number(protocol), username, password, tls };
  try {
    const send = await connect(options, report);
    for (const command of COMMANDS) {
      await send(command).then(
        (reply) => tell("reply", reply),
        (error) => tell("denied", error.message),
      );
    }
  } catch (error) {
    report(error);
  }
  process.exit(0);
}
