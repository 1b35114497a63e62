import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { listeningPorts, portsIn } from "../../../daemon/http/ports.ts";

const HEAD =
  "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const line = (address: string, state: string, index = 0): string =>
  `${String(index).padStart(4)}: ${address} ${address.replace(/[0-9A-F](?=.*:)/g, "0").replace(/:.*/, ":0000")} ${state} 00000000:00000000 00:00000000 00000000     0        0 1 1\n`;

test("lists the sockets that listen on an address that the daemon reaches", () => {
  const table = [
    line("0100007F:1435", "0A"),
    line("00000000:0BB8", "0A", 12345),
    line("0100007F:9C40", "01"),
    line("0200007F:0BB9", "0A"),
    line("00000000000000000000000000000000:1F91", "0A"),
    line("00000000000000000000000001000000:1F92", "0A"),
    "nonsense: 00000000:0BB8\n",
  ];
  expect(portsIn(HEAD + table.join(""))).toEqual([5173, 3000, 8081]);
});

test("lists what listens now, without the platform's own ports", async () => {
  const servers = await Promise.all(
    ["127.0.0.1", "0.0.0.0"].map(async (host) => {
      const server = createServer();
      await new Promise<void>((resolve) => {
        server.listen(0, host, resolve);
      });
      return server;
    }),
  );
  const [first = 0, second = 0] = servers.map((server) => (server.address() as AddressInfo).port);
  expect(listeningPorts([])).toEqual(expect.arrayContaining([first, second]));
  expect(listeningPorts([first])).not.toContain(first);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  expect(listeningPorts([])).not.toContain(second);
});
