/** The person's side of OpenSSH: her key for sandboxes, and the options with which `ssh` finds a session. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import * as path from "node:path";
import { configurationFile, type Environment } from "../../configuration.ts";
import { EXIT, Failure } from "../../failure.ts";
import { run, shellWord } from "../../programs.ts";

/** The user in each sandbox. */
const USER = "agent";

/** The person's key for sandboxes, beside her login. It is of use only with that login. */
const keyFile = (environment: Environment): string =>
  path.join(path.dirname(configurationFile(environment)), "ssh", "id_ed25519");

/** @returns the file of the key, which is made if it is missing @throws Failure without OpenSSH's client */
const keyOfPerson = async (environment: Environment): Promise<string> => {
  const file = keyFile(environment);
  if (existsSync(file)) return file;
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "platform", "-f", file]);
  return file;
};

/** The public half of the key. @throws Failure if it does not exist yet */
export const publicKey = (environment: Environment): string => {
  const file = `${keyFile(environment)}.pub`;
  if (!existsSync(file))
    throw new Failure(EXIT.refused, "no_key", {
      message: "There is no key yet. Run `platform ssh-config` once.",
    });
  return readFileSync(file, "utf8").trim();
};

/** A shell's word in OpenSSH's configuration, where % has a meaning. */
const word = (text: string): string => shellWord(text).replaceAll("%", "%%");

/**
 * OpenSSH's options for sessions. The host's key is not compared: each connection has a new one, and the service has shown who it is
 * by TLS.
 *
 * @param program how this program is called
 */
export const sshOptions = async (
  program: readonly string[],
  environment: Environment,
): Promise<readonly (readonly [name: string, value: string])[]> => [
  ["User", USER],
  ["IdentityFile", `"${await keyOfPerson(environment)}"`],
  ["IdentitiesOnly", "yes"],
  ["ProxyCommand", [...program.map(word), "ssh-proxy", "%n"].join(" ")],
  ["StrictHostKeyChecking", "no"],
  ["UserKnownHostsFile", "/dev/null"],
  ["LogLevel", "ERROR"],
];
