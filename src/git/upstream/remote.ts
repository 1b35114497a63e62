/**
 * Calls to the git server that keeps a repository (api.md 2, threats.md G03 to G05).
 *
 *  R1 A credential is in no argument, no environment and no configuration. Git's askpass gets a password over
 *     descriptor 3 when the server requests it, and only for that server. An ssh key is a file of mode 0600 while ssh
 *     runs.
 *  R2 The checked address is the one that is dialled, and no redirect is followed.
 *  R3 Every call ends: by its deadline, or when nothing moves. Its files and its memory are bounded.
 *  R4 A failure is either temporary (`unavailable`) or a refusal by the server (`refused`).
 *  R5 A web page is not a repository. If a server does not answer in git's protocol, git searches the page for a list
 *     of refs, and may find an empty one. So an empty list counts only if the server spoke git.
 */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { randomUUID } from "node:crypto";
import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RepositoryCredential } from "../../domain/repository/repository-credential.ts";
import { filesystem } from "../repository/building.ts";
import { GitError } from "../port.ts";
import { damagedObject, diskFull, gitMessage, isDiskFull } from "../failure.ts";
import { type GitBounds, type GitRequest, runGit } from "../run.ts";
import { checkRemote, type SshAddress } from "./source.ts";

type PasswordCredential = Extract<RepositoryCredential, { kind: "password" }>;
type KeyCredential = Extract<RepositoryCredential, { kind: "ssh_key" }>;

/** A repository at another server, as git reaches it. */
export interface RemoteRepository {
  readonly url: string;
  readonly credential: PasswordCredential | KeyCredential | null;
}

export interface RemoteOptions {
  /** The directory of askpass and of temporary keys. */
  readonly directory: string;
  /** PLATFORM_GIT_ALLOW_HOSTS, lower case. */
  readonly allowHosts: readonly string[];
  /** Milliseconds without a byte from the server after which a call is given up. */
  readonly stallMs: number;
  /** Limits for git while it receives requested data. */
  readonly bounds: GitBounds;
}

/** Options that all calls to one server share. */
export type Remote = Required<Pick<GitRequest, "config" | "environment" | "stallMs">> &
  Pick<GitRequest, "answer"> & {
    /** The address for the command line. */
    readonly address: string;
    /** The numeric address that is dialled, for messages. */
    readonly dialled: string;
  };

/** A listing contains at most 16 MiB of refs (run.ts). Git must not use more memory for it than this. */
export const TALK_BOUNDS: GitBounds = { memoryBytes: 1024 ** 3, fileBytes: 64 * 1024 ** 2 };

const askpassPath = (directory: string): string => join(directory, ".askpass");

// The texts are git's own, in English. A prompt has no line end, and printf is a shell builtin.
const askpass = `#!/bin/sh
printf '%s\\n' "$1" >&3 || exit 1
IFS= read -r word <&3 || exit 1
[ -n "$word" ] || exit 1
printf '%s\\n' "$word"
`;

/** Writes the program that git asks for passwords. It is complete before it gets its name. */
export const installAskpass = (directory: string): Effect.Effect<void, GitError> =>
  filesystem("Setting up the password prompt", async () => {
    const aside = join(directory, `.askpass.${process.pid}`);
    await writeFile(aside, askpass);
    await chmod(aside, 0o755);
    await rename(aside, askpassPath(directory));
  });

/** Answers git's prompts for this one server. A prompt for another server gets an empty line, which is a refusal. */
export const passwordTeller =
  ({ username, password }: PasswordCredential, origin: string) =>
  (prompt: string): string => {
    const { protocol, host } = new URL(origin);
    if (prompt === `Username for '${origin}': `) return username;
    const isPassword = prompt.startsWith(`Password for '${protocol}//`) && prompt.endsWith(`@${host}': `);
    return isPassword ? password : "";
  };

/** ssh as git starts it, through a shell. The paths are ours and contain no quote. */
const sshCommand = (files: string, { host, port, address }: SshAddress): string => {
  const settings: Readonly<Record<string, string>> = {
    HostName: address,
    // The form in which known_hosts names a host with a port other than ssh's own.
    HostKeyAlias: port === "22" ? host : `[${host}]:${port}`,
    CheckHostIP: "no",
    StrictHostKeyChecking: "yes",
    UserKnownHostsFile: join(files, "known_hosts"),
    GlobalKnownHostsFile: "/dev/null",
    UpdateHostKeys: "no",
    IdentityFile: join(files, "key"),
    IdentitiesOnly: "yes",
    IdentityAgent: "none",
    BatchMode: "yes",
    PreferredAuthentications: "publickey",
    ForwardAgent: "no",
    ClearAllForwardings: "yes",
    ProxyCommand: "none",
    PermitLocalCommand: "no",
    ControlMaster: "no",
    ControlPath: "none",
    ConnectTimeout: "15",
    ServerAliveInterval: "10",
    ServerAliveCountMax: "3",
  };
  const options = Object.entries(settings).map(([name, value]) => `-o '${name}=${value}'`);
  return ["ssh -F /dev/null -T", ...options].join(" ");
};

/** A pasted key may lack its last line end, and ssh refuses a key without it. */
const withLineEnd = (text: string): string => (text.endsWith("\n") ? text : `${text}\n`);

const keyFiles = (
  directory: string,
  { privateKey, knownHosts }: KeyCredential,
): Effect.Effect<string, GitError, Scope.Scope> =>
  Effect.acquireRelease(
    filesystem("Laying out the ssh key", async () => {
      const files = join(directory, `.key-${randomUUID()}`);
      await mkdir(files, { mode: 0o700 });
      await writeFile(join(files, "key"), withLineEnd(privateKey), { mode: 0o600 });
      await writeFile(join(files, "known_hosts"), withLineEnd(knownHosts), { mode: 0o600 });
      return files;
    }),
    (files) => Effect.ignore(filesystem("Sweeping", () => rm(files, { recursive: true, force: true }))),
  );

/** Checks the address and provides the credential while the scope is open. */
export const openRemote = Effect.fnUntraced(function* (
  { url, credential }: RemoteRepository,
  { directory, allowHosts, stallMs }: RemoteOptions,
): Effect.fn.Return<Remote, GitError, Scope.Scope> {
  const remote = yield* checkRemote(url, { allowHosts });
  if ("web" in remote) {
    const { web, origin } = remote;
    const password = credential?.kind === "password" ? credential : null;
    return {
      address: web.address,
      dialled: remote.address,
      stallMs,
      config: web.config,
      environment: {
        GIT_ALLOW_PROTOCOL: web.protocol,
        ...(password === null ? {} : { GIT_ASKPASS: askpassPath(directory) }),
      },
      ...(password === null ? {} : { answer: passwordTeller(password, origin) }),
    };
  }
  if (credential?.kind !== "ssh_key") {
    return yield* new GitError({ code: "refused", message: "An ssh URL is opened by a private key." });
  }
  const files = yield* keyFiles(directory, credential);
  return {
    address: remote.ssh.url,
    dialled: remote.address,
    stallMs,
    config: {},
    environment: {
      GIT_ALLOW_PROTOCOL: "ssh",
      GIT_SSH_VARIANT: "ssh",
      GIT_SSH_COMMAND: sshCommand(files, remote.ssh),
    },
  };
});

/** Errors that a retry cannot change. A redirect is one, because redirects are not followed. */
const refusals =
  /Authentication failed|could not read (?:Username|Password)|returned error: (?:3\d\d|40[0-46-9]|41\d)|not found|does not appear to be a git repository|Permission denied|Host key verification failed|Could not read from remote repository|REMOTE HOST IDENTIFICATION|invalid format|error in libcrypto|access denied/i;
const passing = /Could not resolve|Connection (?:timed out|refused|reset|closed)|timed out/i;

const unavailable = (message: string): GitError =>
  new GitError({
    code: "unavailable",
    message: `The repository's server could not be reached or did not answer: ${message}`,
  });

/** Git's error message, or ssh's: if ssh fails, git only knows that it could not read. */
const faultIn = (stderr: string, repository: string | null): string => {
  const message = gitMessage(stderr, repository);
  if (!message.includes("Could not read from remote repository")) return message;
  const before = stderr
    .split("\n")
    .findLast((line) => line.trim() !== "" && !/^(?:fatal:|Please make|and the)/.test(line));
  return before === undefined ? message : gitMessage(before, repository);
};

const refusal = (message: string): GitError => new GitError({ code: "refused", message });

/** R5. */
export const notGit = (): GitError =>
  refusal(
    "The repository's server answered with a web page, not with git. Check the URL and the credential: the page may ask to sign in.",
  );

/** The server accepted git's first request, but not the following one. */
const halfWay = /RPC failed; HTTP (3\d\d|40[0-46-9]|41\d)/;

/** Git and ssh have made no connection. */
const UNCONNECTED =
  /Failed to connect|Could not connect|Couldn't connect|Connection (?:refused|timed out)|No route to host/i;

/** R4, by git's message. @param address the address that git was told to dial */
export const remoteError = (stderr: string, repository: string | null, address: string): GitError => {
  if (isDiskFull(stderr)) return diskFull();
  const damage = damagedObject(stderr);
  if (damage !== null)
    return refusal(`The repository was read, but git refuses a part of its history. ${damage}.`);
  if (/info\/refs not valid: is this a git repository/.test(stderr)) return notGit();
  const [, status] = halfWay.exec(stderr) ?? [];
  if (status === "401" || status === "403") {
    return refusal(
      `The repository's server rejected the credential (HTTP ${status}) after it had accepted the first request. Check that the credential is valid and has read and write access.`,
    );
  }
  if (status !== undefined) return refusal(`The repository's server refused the request (HTTP ${status}).`);
  const message = faultIn(stderr, repository);
  return !passing.test(message) && refusals.test(message)
    ? refusal(`The repository's server refused the request: ${message}`)
    : unavailable(UNCONNECTED.test(message) ? `${message} (address ${address})` : message);
};

/** Every exit code of git itself. */
const anyCode = Array.from({ length: 256 }, (_, code) => code);

/** Runs git against the server. Codes outside `expect` fail as R4 says. */
export const runRemote = (remote: Remote, request: GitRequest) => {
  const { address: _address, dialled, ...common } = remote;
  const { expect = [0] } = request;
  return runGit({
    ...common,
    ...request,
    config: { ...common.config, ...request.config },
    environment: { ...common.environment, ...request.environment },
    expect: anyCode,
  }).pipe(
    Effect.mapError((error) => (error.code === "timeout" ? unavailable(error.message) : error)),
    Effect.flatMap((output) =>
      expect.includes(output.exitCode)
        ? Effect.succeed(output)
        : Effect.fail(remoteError(output.stderr, request.repository, dialled)),
    ),
  );
};

/** The output of `ls-remote`. */
const list = Effect.fnUntraced(function* (
  remote: Remote,
  refs: readonly string[],
  environment: Readonly<Record<string, string>>,
) {
  const output = yield* runRemote(remote, {
    repository: null,
    args: ["ls-remote", "--symref", "--", remote.address, ...refs],
    bounds: TALK_BOUNDS,
    environment,
  });
  if (!output.truncated) return output;
  return yield* new GitError({
    code: "unavailable",
    message: "The repository's server lists too many refs.",
  });
});

/** A received packet in git's trace. A web page has none. */
const SPOKEN = /packet: +\S+< /;

/** R5: lists refs that another call did not find, and fails if the server does not speak git. */
const listSurely = Effect.fnUntraced(function* (remote: Remote, refs: readonly string[]) {
  const output = yield* list(remote, refs, { GIT_TRACE_PACKET: "2" });
  const isWeb = /^https?:/.test(remote.address);
  return !isWeb || SPOKEN.test(output.stderr) ? output : yield* notGit();
});

/** Fails if the server does not speak git (R5). */
export const requireGitServer = (remote: Remote): Effect.Effect<void, GitError> =>
  Effect.asVoid(listSurely(remote, ["HEAD"]));

/** The requested refs of the server by full name, and the target of its HEAD. */
export const listRemote = Effect.fnUntraced(function* (
  remote: Remote,
  refs: readonly string[],
): Effect.fn.Return<ReadonlyMap<string, string>, GitError> {
  const first = yield* list(remote, refs, {});
  const { stdout } = first.stdout.length > 0 ? first : yield* listSurely(remote, refs);
  const pairs = stdout
    .toString("utf8")
    .split("\n")
    .map((line): readonly [string, string] => {
      const [value = "", name = ""] = line.split("\t");
      return [name, value];
    })
    // A symbolic ref's own line comes first. For HEAD, only its target is wanted.
    .filter(([name, value]) => refs.includes(name) && (name !== "HEAD" || value.startsWith("ref: ")));
  return new Map(pairs);
});
