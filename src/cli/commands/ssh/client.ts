/** The person's side of OpenSSH: her key for sandboxes, and the options with which `ssh` finds a session. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import * as path from "node:path";
import { configurationFile, type Environment } from "../../configuration.ts";
import { EXIT, Failure } from "../../failure.ts";
import { run, shellWord } from "../../programs.ts";
import { shortId } from "../../words.ts";

/** All sessions as hosts of OpenSSH. */
export const HOSTS = "*.platform";
const SUFFIX = "platform";
/** The user in each sandbox. */
const USER = "agent";

/** A session's name as a host: the last digits of its id and of its project's. */
export const hostName = (pid: string, sid: string): string => `${shortId(sid)}.${shortId(pid)}.${SUFFIX}`;

/** The session and the project of a host's name: what stands for their ids. Null: it is no such name. */
export const namedByHost = (host: string): { readonly session: string; readonly project: string } | null => {
  const [session = "", project = "", suffix, more] = host.split(".");
  if (session === "" || project === "" || suffix !== SUFFIX || more !== undefined) return null;
  return { session, project };
};

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
