/** The order in which the addresses of a name are dialled, and what is said where none answers. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { chooseAddress, dial, type DialOptions } from "../../../src/ground/net/dial.ts";
import { type Behaviour, NetworkDouble } from "../../support/network.ts";

const [V6, V4] = ["2606:4700::1111", "93.184.216.34"];
const TO = { host: "two.example.org", port: 443 };
const CONNECT_MS = 10_000;

let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer((socket) => void socket.resume()).listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => server.close());
afterEach(() => vi.useRealTimers());

const networked = (network: NetworkDouble): DialOptions => ({
  ...network,
  allowances: { hosts: new Set() },
  connectMs: CONNECT_MS,
});
const network = (behaviours: Readonly<Record<string, Behaviour>>): NetworkDouble =>
  new NetworkDouble([Object.keys(behaviours)], (address) => behaviours[address] ?? "refuses");

/** Only the timers of the module: sockets have their own. */
const stopTime = () => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });

describe("a name with two addresses", () => {
  it("is reached at the second if the first refuses", async () => {
    const two = network({ [V6]: "refuses", [V4]: port });
    (await dial(TO, networked(two))).destroy();
    expect([two.resolved, two.dialled]).toEqual([[TO.host], [`${V6}:443`, `${V4}:443`]]);
  });

  it("is reached at the second if the first has not answered within a second", async () => {
    stopTime();
    const two = network({ [V6]: "silent", [V4]: port });
    const reached = dial(TO, networked(two));
    await vi.advanceTimersByTimeAsync(999);
    expect(two.dialled).toEqual([`${V6}:443`]);
    await vi.advanceTimersByTimeAsync(1);
    (await reached).destroy();
    expect(two.dialled).toEqual([`${V6}:443`, `${V4}:443`]);
  });

  it("is reached at the first if that answers after the second was dialled", async () => {
    stopTime();
    const slow = Promise.withResolvers<void>();
    const two = network({ [V6]: "silent", [V4]: "refuses" });
    const connect = (address: string, at: number) => {
      const socket = two.connect(address, at);
      if (address === V6) void slow.promise.then(() => socket.connect(port, "127.0.0.1"));
      return socket;
    };
    const reached = dial(TO, { ...networked(two), connect });
    await vi.advanceTimersByTimeAsync(1000);
    expect(two.dialled).toEqual([`${V6}:443`, `${V4}:443`]);
    slow.resolve();
    (await reached).destroy();
  });

  it("is given up after the time for a connection, and each address is named", async () => {
    stopTime();
    const failure = dial(TO, networked(network({ [V6]: "silent", [V4]: "refuses" }))).catch(
      (error: unknown) => error,
    );
    await vi.advanceTimersByTimeAsync(CONNECT_MS);
    expect(await failure).toMatchObject({
      reason: { _tag: "NotConnected" },
      isUnsent: true,
      message: `two.example.org cannot be reached (${V4}:443 refuses connections, [${V6}]:443 does not answer)`,
    });
  });

  it("has the one that answers for a program that dials one", async () => {
    expect(await chooseAddress(TO, networked(network({ [V6]: "refuses", [V4]: port })))).toBe(V4);
  });
});

it("dials the single address of a name once, and leaves it to a program that dials itself", async () => {
  const one = network({ [V4]: "refuses" });
  await expect(dial(TO, networked(one))).rejects.toThrow(`(${V4}:443 refuses connections)`);
  expect(await chooseAddress(TO, networked(one))).toBe(V4);
  expect(one.dialled).toEqual([`${V4}:443`]);
});

it("alternates between the families, and dials eight addresses at most", async () => {
  const v6 = Array.from({ length: 8 }, (_, index) => `2606:4700::${index + 1}`);
  const many = new NetworkDouble([[...v6, V4, "1.1.1.1"]]);
  await expect(dial(TO, networked(many))).rejects.toThrow("cannot be reached");
  const [a, b, c, d, e, f] = v6;
  expect(many.dialled).toEqual([a, V4, b, "1.1.1.1", c, d, e, f].map((address) => `${address}:443`));
});

const silence = () => new Promise<never>(() => undefined);

it("gives a resolver up that does not answer", async () => {
  stopTime();
  const failure = dial(TO, { ...networked(network({})), resolve: silence }).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(CONNECT_MS);
  expect(await failure).toMatchObject({ reason: { _tag: "Late", ms: CONNECT_MS } });
});
