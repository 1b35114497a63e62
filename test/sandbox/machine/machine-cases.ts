/** The cases of `local` in one form: the conformance suite, the probes, and what is particular to this provider. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { type Server, createServer } from "node:http";
import * as Effect from "effect/Effect";
import * as ManagedRuntime from "effect/ManagedRuntime";
import { MachineSandboxes } from "../../../src/sandbox/machine/sandboxes.ts";
import { SandboxProvider } from "../../../src/sandbox/port.ts";
import { processesOfSandbox } from "../../support/machine/processes-seeing.ts";
import {
  CANARY,
  type Case,
  type Subject,
  sandbox,
  sandboxCases,
  specOf,
} from "../../conformance/sandboxes/sandbox.ts";
import { INTRUSION, probes } from "../../conformance/sandboxes/sandbox-probes.ts";
import { descriptorCases } from "./machine-descriptors.ts";
import { formerServiceCases } from "./machine-former.ts";
import { limitCases } from "./machine-limits.ts";
import { shadowCases } from "./machine-shadows.ts";
import {
  type MachineSetup,
  ask,
  machineOptions,
  machineSubject,
  runIn,
  installationOf,
} from "./machine-subject.ts";

/** Where the cases run: the provider's setup, and a listener on the host's loopback that stands for the service. */
export interface MachineWorld {
  readonly setup: MachineSetup;
  readonly subject: Subject;
  readonly port: number;
}

/** Answers every request with what it was asked, and some bulk. */
export const openService = async (): Promise<Server> => {
  const service = createServer((request, response) => {
    response.end(`${request.method} ${request.url} for ${request.headers.host}: ${"x".repeat(100_000)}`);
  });
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
  return service;
};

/** Asks for a URL through the proxy, as a program that obeys http_proxy does; prints the status and the length. */
const fetchScript = (url: string): string =>
  `node -e '
  require("node:http").request({ host: "127.0.0.1", port: 3128, path: "${url}", headers: { host: new URL("${url}").host } }, (answer) => {
    let text = "";
    answer.on("data", (chunk) => (text += chunk)).on("end", () => console.log(answer.statusCode, text.slice(0, 60), text.length));
  }).end()'`;

/** Sixty directories in each other, 12,000 bytes of path; the outermost and the innermost are locked. */
const DEEP_TREE = `node -e '
  const fs = require("node:fs");
  const name = "d".repeat(200);
  let depth = 0;
  for (; depth < 60; depth += 1) {
    fs.mkdirSync(name);
    process.chdir(name);
  }
  fs.writeFileSync("file", "");
  fs.chmodSync(".", 0);
  console.log(depth);
' && chmod 0 /workspace/d*`;

/** A file below /proc of each process of a sandbox; one that ended while they were listed tells nothing. */
const told = (id: string, file: "cmdline" | "status"): readonly string[] =>
  processesOfSandbox(id).flatMap((pid) => {
    try {
      return [readFileSync(`/proc/${pid}/${file}`, "utf8")];
    } catch {
      return [];
    }
  });

/** Whether the form has a seccomp filter here: without bubblewrap, on the processor that gates are written for. */
const filters = ({ form }: MachineSetup): boolean => form === "bubblewrap" || process.arch === "x64";

/** Cases that share one sandbox, which is booted by the first that asks and destroyed by the last case. */
const sharedCases = ({ setup, subject, port }: MachineWorld): readonly Case[] => {
  const runtime = ManagedRuntime.make(subject.layer);
  const spec = specOf(randomUUID(), { image: subject.image });
  let booted: Promise<void> | null = null;
  const boot = () =>
    (booted ??= runtime.runPromise(Effect.flatMap(SandboxProvider, (provider) => provider.create(spec))));
  const inside = (name: string, body: Effect.Effect<void, unknown, SandboxProvider>): Case => ({
    name,
    run: Effect.tryPromise({
      try: async () => {
        await boot();
        await runtime.runPromise(body);
      },
      catch: (error) => error,
    }),
  });
  const agent = (script: string) => runIn(spec.id, "agent", script);
  const ownKernel = setup.form === "gvisor" || setup.runtime === "runsc";
  const world = {
    runDir: setup.runDir,
    canary: CANARY,
    hostPort: port,
    ownKernel,
    emptySys: setup.form === "docker",
  };

  return [
    inside(
      "lays the sandbox out as the specification does",
      Effect.gen(function* () {
        const writable = yield* agent(
          'set -e; pwd; touch /workspace/a "$HOME/a" /tmp/a /dev/shm/a; test -x /usr/local/bin/platform-agent; echo $HOME',
        );
        assert.equal(writable.stderr, "");
        assert.equal(writable.stdout, "/workspace\n/opt/platform/home\n");
        const first = yield* runIn(spec.id, "daemon", "tr '\\0' ' ' < /proc/1/cmdline");
        assert.match(first.stdout, /\/usr\/local\/bin\/platform-entrypoint/);
        const health = JSON.parse(yield* ask(spec.id, "/platform/health")) as { readonly ppid: number };
        assert.equal(health.ppid, 1);
      }),
    ),
    inside(
      "gives the token to the daemon alone and project secrets to the agent alone [S05]",
      Effect.gen(function* () {
        const environment = yield* ask(spec.id, "/environment");
        assert.ok(environment.includes(`${CANARY}-token`));
        assert.ok(!environment.includes(`${CANARY}-secret`));
        assert.ok(environment.includes('"PLATFORM_WORKSPACE":"/workspace"'));
        const { stdout } = yield* agent("env");
        assert.ok(!stdout.includes(`${CANARY}-token`));
        assert.ok(stdout.includes(`SOME_API_KEY=${CANARY}-secret`));
        const commands = told(spec.id, "cmdline");
        assert.ok(commands.length > 0 && !commands.join("").includes(CANARY));
      }),
    ),
    inside(
      "runs nothing as root, in no user namespace",
      Effect.sync(() => {
        // An engine starts gVisor itself as root. Inside, its uids are another kernel's.
        if (setup.runtime === "runsc") return;
        const own = process.getuid?.() ?? 0;
        const statuses = told(spec.id, "status");
        assert.ok(statuses.length > 0);
        for (const status of statuses) {
          const uids = (/^Uid:\s+(.*)$/m.exec(status)?.[1] ?? "").split("\t");
          for (const uid of uids.map(Number))
            assert.ok(uid !== 0 && (own === 0 ? uid > 65_536 : uid === own));
        }
      }),
    ),
    inside(
      "gives the agent no capability, no new privileges, and the filter where there is one",
      Effect.gen(function* () {
        const { stdout } = yield* agent("cat /proc/self/status; setpriv --dump");
        for (const set of ["CapInh", "CapPrm", "CapEff", "CapBnd"]) {
          assert.match(stdout, new RegExp(`^${set}:\\s+0+$`, "m"));
        }
        // gVisor has none to ask for.
        assert.match(stdout, /^Ambient capabilities: \[(?:none|unsupported)\]$/m);
        assert.match(stdout, /^no_new_privs: 1$/m);
        assert.match(stdout, filters(setup) ? /^Seccomp:\s+2$/m : /^Seccomp:\s+0$/m);
      }),
    ),
    inside(
      "reaps orphans",
      Effect.gen(function* () {
        const script = `for n in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.01 &); done
          for try in $(seq 200); do
            sleep 0.05; grep -l '^State:.Z' /proc/[0-9]*/status || { echo none; exit 0; }; done`;
        assert.match((yield* runIn(spec.id, "daemon", script)).stdout, /none/);
        assert.match((yield* agent(script)).stdout, /none/);
      }),
    ),
    inside(
      "runs the machine's Java and Maven, whose configuration Debian keeps in /etc, without Maven's passwords",
      Effect.gen(function* () {
        if (subject.image !== null) return;
        for (const program of ["java", "mvn"].filter((name) => existsSync(`/usr/bin/${name}`))) {
          const { code, stderr } = yield* agent(`${program} -version`);
          assert.deepEqual([program, code, code === 0 ? "" : stderr], [program, 0, ""]);
        }
        assert.notEqual((yield* agent("cat /etc/maven/settings.xml")).code, 0);
      }),
    ),
    inside(
      "lets the agent work with git",
      Effect.gen(function* () {
        const done = yield* agent(
          "set -e; git init -q /workspace/r; cd /workspace/r; echo 1 > f; git add f; git -c user.name=a -c user.email=a@b.c commit -qm one; git log --format=%s",
        );
        assert.deepEqual([done.code, done.stdout], [0, "one\n"]);
      }),
    ),
    inside(
      "carries the agent's requests to the service, streams and tunnels included",
      Effect.gen(function* () {
        const { stdout } = yield* agent(fetchScript("http://platform.internal/v1/me?x=1"));
        assert.match(stdout, /^200 GET \/v1\/me\?x=1 for platform.internal: x+ 1000\d\d\n$/);
      }),
    ),
    inside(
      "lets the agent read what the daemon puts there for it, and nothing else of the daemon's",
      Effect.gen(function* () {
        yield* runIn(
          spec.id,
          "daemon",
          "umask 022; echo credential > /run/platform/agent/c; echo own > /run/platform/own; chmod 600 /run/platform/own",
        );
        assert.equal((yield* agent("cat /run/platform/agent/c")).stdout, "credential\n");
        assert.notEqual((yield* agent("cat /run/platform/own")).code, 0);
        assert.notEqual((yield* agent("echo x > /run/platform/agent/c")).code, 0);
      }),
    ),
    inside(
      "ends all that the agent started when the daemon kills as the agent",
      Effect.gen(function* () {
        const script = "setsid sleep 1234 & (setsid sh -c 'sleep 1234 & sleep 1234' &) ; sleep 1234";
        const { pid } = JSON.parse(
          yield* ask(spec.id, "/run", { as: "agent", argv: ["sh", "-c", script], detached: true }),
        ) as { readonly pid: number };
        yield* ask(spec.id, `/kill/${pid}`);
        yield* agent("kill -KILL -1");
        const left = yield* runIn(
          spec.id,
          "daemon",
          `for try in $(seq 200); do
          grep -l 'sleep.123[4]' /proc/[0-9]*/cmdline || { echo none; exit 0; }; sleep 0.05; done`,
        );
        assert.match(left.stdout, /none/);
      }),
    ),
    ...probes(world, filters(setup)).map(({ name, script }) =>
      inside(
        `does not let the agent ${name}`,
        Effect.gen(function* () {
          const { code, stdout, stderr } = yield* agent(script);
          assert.notEqual(code, 0, `it succeeded: ${stdout}${stderr}`);
          assert.notEqual(code, 127, `a program is missing: ${stderr}`);
        }),
      ),
    ),
    inside(
      "finds ways into the daemon by the same probe as the daemon itself",
      Effect.gen(function* () {
        const { code, stdout } = yield* runIn(spec.id, "daemon", INTRUSION);
        assert.equal(code, 0);
        const calls = setup.form === "namespaces" ? ["signal by handle to "] : [];
        for (const way of ["environ of ", "fd of ", "signal to ", ...calls])
          assert.ok(stdout.includes(way), stdout);
      }),
    ),
    inside(
      "takes down with the sandbox whatever the agent left running",
      Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const script =
          "mkdir -p /workspace/locked/deeper; chmod 0 /workspace/locked; for n in 1 2 3; do setsid sh -c 'trap \"\" TERM; sleep 1000 & sleep 1000' & done; sleep 1000";
        yield* ask(spec.id, "/run", { as: "agent", argv: ["sh", "-c", script], detached: true });
        yield* provider.destroy(spec.id);
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
        yield* runtime.disposeEffect;
      }),
    ),
  ];
};

const stuck = () => Promise.reject(new Error("processes of the sandbox cannot be stopped"));

const ownCases = ({ setup, subject }: MachineWorld): readonly Case[] => {
  const serviceOf = <A>(body: Effect.Effect<A, unknown, SandboxProvider>) =>
    Effect.provide(body, subject.layer);
  return [
    {
      name: "ends with the daemon's exit code",
      run: Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* sandbox(spec);
        yield* subject.end(spec.id);
        assert.match((yield* provider.awaitExit(spec.id)).message, /code 7/);
      }).pipe(Effect.scoped, Effect.provide(subject.layer)),
    },
    {
      name: "ends a sandbox in order, and keeps its log to the last line",
      run: Effect.gen(function* () {
        const provider = yield* SandboxProvider;
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* sandbox(spec);
        yield* ask(spec.id, "/platform/health");
        yield* provider.end(spec.id);
        assert.equal(yield* provider.logs(spec.id), "stand-in daemon listens\nlast words\n");
        assert.deepEqual(processesOfSandbox(spec.id), []);
      }).pipe(Effect.scoped, Effect.provide(subject.layer)),
    },
    {
      name: "reports the launcher's message when a sandbox cannot start, and leaves nothing [I9]",
      run: Effect.gen(function* () {
        const options = machineOptions(setup, "http://127.0.0.1:1");
        const installation = yield* Effect.promise(() => installationOf(setup, options));
        const parts = { ...installation.parts, entrypoint: "/nonexistent/entrypoint" };
        const sandboxes = yield* Effect.promise(() => MachineSandboxes.open({ ...installation, parts }));
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* Effect.promise(() => assert.rejects(sandboxes.create(spec), /entrypoint/));
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
        sandboxes.close();
      }),
    },
    {
      name: "reports the end of a sandbox whose processes do not end, and destroys it later",
      run: Effect.gen(function* () {
        const options = machineOptions(setup, "http://127.0.0.1:1", { diskBytes: 0 });
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* Effect.promise(async () => {
          const sandboxes = await MachineSandboxes.open(await installationOf(setup, options), stuck);
          await sandboxes.create(spec);
          await sandboxes.watch(0);
          assert.equal((await sandboxes.awaitExit(spec.id)).code, "disk_exceeded");
          await sandboxes.destroy(spec.id);
          sandboxes.close();
        });
        assert.deepEqual(yield* subject.leftovers(spec.id), []);
      }),
    },
    {
      name: "removes a directory tree that is too deep for any path [G08]",
      run: serviceOf(
        Effect.gen(function* () {
          const provider = yield* SandboxProvider;
          const spec = specOf(randomUUID(), { image: subject.image });
          yield* sandbox(spec);
          const dug = yield* runIn(spec.id, "agent", DEEP_TREE);
          assert.deepEqual([dug.code, dug.stdout], [0, "60\n"], dug.stderr);
          yield* provider.destroy(spec.id);
          assert.deepEqual(yield* subject.leftovers(spec.id), []);
        }).pipe(Effect.scoped),
      ),
    },
    {
      name: "follows no link that stands in the daemon's socket's place",
      run: serviceOf(
        Effect.gen(function* () {
          const provider = yield* SandboxProvider;
          const spec = specOf(randomUUID(), { image: subject.image });
          yield* sandbox(spec);
          const linked = yield* runIn(
            spec.id,
            "daemon",
            "rm -f /run/platform/d.sock; ln -s /run/platform/other.sock /run/platform/d.sock",
          );
          assert.equal(linked.stderr, "");
          const failure = yield* Effect.flip(provider.link(spec.id));
          assert.match(failure.message, /not a socket/);
        }).pipe(Effect.scoped),
      ),
    },
    {
      name: "restores the egress of a sandbox that a later service finds",
      run: Effect.gen(function* () {
        const spec = specOf(randomUUID(), { image: subject.image });
        yield* serviceOf(Effect.flatMap(SandboxProvider, (provider) => provider.create(spec)));
        const { stdout } = yield* serviceOf(
          runIn(spec.id, "agent", fetchScript("http://platform.internal/again")),
        );
        assert.match(stdout, /^200 GET \/again/);
        yield* serviceOf(Effect.flatMap(SandboxProvider, (provider) => provider.destroy(spec.id)));
      }),
    },
    {
      name: "reports to the doctor that everything is enforced, processor time where control groups can",
      run: Effect.gen(function* () {
        const report = yield* Effect.flatMap(SandboxProvider, (provider) => provider.doctor);
        assert.deepEqual([report.usable, report.problem], [true, null]);
        const weak = report.findings
          .filter(({ how }) => how === "not at all")
          .map(({ subject: what }) => what);
        const { controls } = yield* Effect.promise(() =>
          installationOf(setup, machineOptions(setup, "http://127.0.0.1:1")),
        );
        assert.deepEqual(weak, [
          ...(filters(setup) ? [] : ["system calls"]),
          ...(controls.has("cpu") ? [] : ["processor time"]),
        ]);
        assert.match(
          report.provider,
          new RegExp(`^${setup.form === "gvisor" || setup.form === "docker" ? setup.form : "local"} `),
        );
      }).pipe(Effect.provide(subject.layer)),
    },
  ];
};

/** Every case, in the order in which they are to run. */
export const machineCases = (setup: MachineSetup, port: number): readonly Case[] => {
  const world = { setup, port, subject: machineSubject(setup, `http://127.0.0.1:${port}`) };
  return [
    ...sandboxCases(world.subject),
    ...ownCases(world),
    ...formerServiceCases(world),
    ...descriptorCases(world),
    ...shadowCases(setup),
    ...sharedCases(world),
    ...limitCases(world),
  ];
};
