/** Closes what it inherited while Node's own thread reads the file of NODE_EXTRA_CA_CERTS. */
import { readdirSync, readlinkSync, writeSync } from "node:fs";
import { closeInherited } from "../../../src/ground/inherited.ts";

const path = process.env["NODE_EXTRA_CA_CERTS"];
const isOpen = () =>
  readdirSync("/proc/self/fd").some((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`) === path;
    } catch {
      return false; // The listing's own descriptor.
    }
  });

// Starts the thread, as does every program that speaks HTTP.
await import("node:tls");
const nap = new Int32Array(new SharedArrayBuffer(4));
while (!isOpen()) Atomics.wait(nap, 0, 0, 5);
writeSync(1, "closing\n");
closeInherited();
writeSync(1, "closed\n");
