/** A real sshd on the loopback, with its own keys, that lets one key in as the user who runs the tests. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { freePort } from "../../support/machine/free-port.ts";

const SSHD = "/usr/sbin/sshd";
/** sshd as root wants it; Debian's service makes it at its start. */
const PRIVILEGE_SEPARATION = "/run/sshd";

/** Whether this machine has sshd, and ssh with its keys. */
export const hasSshd = existsSync(SSHD) && existsSync("/usr/bin/ssh") && existsSync("/usr/bin/ssh-keygen");

export interface Sshd {
  /** The address of a path on this machine. */
  readonly urlOf: (path: string) => string;
  /** Of the key that is let in. */
  readonly privateKey: string;
  /** Of one that is not. */
  readonly strangersKey: string;
  readonly knownHosts: string;
  readonly close: () => Promise<void>;
}

const makeKey = (directory: string, name: string): { readonly secret: string; readonly open: string } => {
  const file = join(directory, name);
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", file]);
  return { secret: readFileSync(file, "utf8"), open: readFileSync(`${file}.pub`, "utf8") };
};

/** @param directory a separate empty one, which no other user may write into. */
export const startSshd = async (directory: string): Promise<Sshd> => {
  if (process.getuid?.() === 0) mkdirSync(PRIVILEGE_SEPARATION, { recursive: true, mode: 0o755 });
  const [host, known, stranger] = ["host", "known", "stranger"].map((name) => makeKey(directory, name));
  if (host === undefined || known === undefined || stranger === undefined) throw new Error("no keys");
  const port = await freePort();
  writeFileSync(join(directory, "authorized_keys"), known.open);
  const settings = [
    `Port ${port}`,
    "ListenAddress 127.0.0.1",
    `HostKey ${join(directory, "host")}`,
    `AuthorizedKeysFile ${join(directory, "authorized_keys")}`,
    "PidFile none",
    "UsePAM no",
    "StrictModes no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
  ];
  const file = join(directory, "sshd_config");
  writeFileSync(file, `${settings.join("\n")}\n`);
  const sshd = spawn(SSHD, ["-D", "-e", "-f", file], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(sshd, "exit");
  let said = "";
  await new Promise<void>((resolve, reject) => {
    sshd.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("Server listening")) resolve();
    });
    sshd.once("exit", () => reject(new Error(`sshd ended: ${said}`)));
  });
  return {
    urlOf: (path) => `ssh://${userInfo().username}@127.0.0.1:${port}${path}`,
    privateKey: known.secret,
    strangersKey: stranger.secret,
    knownHosts: `[127.0.0.1]:${port} ${host.open}`,
    close: async () => {
      sshd.kill();
      await ended;
    },
  };
};
