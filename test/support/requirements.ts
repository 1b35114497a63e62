/** What a test needs of the machine. On a bare one the tests that lack it are skipped by name; CI has it all. */
import { existsSync } from "node:fs";
import path from "node:path";

/** Where Debian has the programs of administrators, which not everybody's PATH names. */
const ALSO = ["/usr/sbin"];

const program = (name: string): string | undefined =>
  [...(process.env["PATH"] ?? "").split(path.delimiter), ...ALSO]
    .map((directory) => path.join(directory, name))
    .find((file) => existsSync(file));

/** `local` sandboxes run on Linux with bubblewrap; the weaker form without it has its own tests. */
export const sandboxesStartHere = process.platform === "linux" && program("bwrap") !== undefined;

/** nginx, as an upstream behind the proxy. */
export const nginxProgram = program("nginx");

/** What the commands of docs/use need beside the service. */
export const documentsRunHere =
  sandboxesStartHere && ["bash", "curl", "git", "jq", "openssl"].every((name) => program(name) !== undefined);
