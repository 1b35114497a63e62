/** The source of a commit's environment, and which files the build sees (services/environments/build-sources.ts). */
import { randomUUID } from "node:crypto";
import { describe, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { expect } from "vitest";
import { DEVCONTAINER_LIMIT_BYTES } from "../../../src/domain/environment/devcontainer.ts";
import { readEnvironment, type BuildSource } from "../../../src/domain/environment/environment-source.ts";
import { GitBackend } from "../../../src/git/port.ts";
import {
  simulatedBackend,
  type SimulatedEntry,
  SimulatedRepositories,
} from "../../twins/git/repositories.ts";
import {
  buildFiles,
  sourceAt,
  unusedDevcontainer,
} from "../../../src/services/environments/build-sources.ts";

type Files = Readonly<Record<string, SimulatedEntry>>;

const FILE = ".devcontainer/devcontainer.json";
const json = (file: object): string => JSON.stringify(file);
const IMAGE = { image: "debian:13" };
const BUILD = { build: { dockerfile: "Dockerfile" } };
const DOCKERFILE: Files = { ".devcontainer/Dockerfile": "FROM debian:13\n" };

/** A repository, and what a commit of these files is built from. */
const scene = Effect.gen(function* () {
  const git = yield* GitBackend;
  const { commit } = yield* SimulatedRepositories;
  const repository = { projectId: randomUUID() };
  yield* git.create({ ...repository, importFrom: null, defaultBranch: "main" });
  const onto = yield* git.resolveBase(repository, "main");
  const commitOf = (files: Files) => commit(repository, { branch: "main", onto, files, subject: "files" });
  const read = Effect.fnUntraced(function* (files: Files, environment: object = { devcontainer: FILE }) {
    const manifest = Result.getOrThrow(readEnvironment(environment));
    return yield* sourceAt(repository, yield* commitOf(files), manifest);
  });
  const source = Effect.fnUntraced(function* (files: Files, environment?: object) {
    const found = Result.getOrThrow(yield* read(files, environment));
    return found ?? (yield* Effect.die(new Error("nothing is built")));
  });
  const files = (of: BuildSource) => buildFiles({ repository, source: of, after: null, maxBytes: 10_000 });
  return { repository, commitOf, read, source, files };
});

const inTwin = <A, E>(test: Effect.Effect<A, E, GitBackend | SimulatedRepositories>) =>
  Effect.provide(test, simulatedBackend, { local: true });

describe("a project with a devcontainer.json", () => {
  it.effect("that names an image is built from that image, and from no file of the repository", () =>
    inTwin(
      Effect.gen(function* () {
        const { source, files } = yield* scene;
        const built = yield* source({ [FILE]: json(IMAGE), "a.txt": "a" });
        expect(built).toMatchObject({
          dockerfile: FILE,
          devcontainer: { path: FILE, image: "docker.io/library/debian:13" },
        });
        const page = yield* files(built);
        expect(page?.next).toBe(null);
        expect(page?.entries.map(({ path, content }) => [path, Buffer.from(content).toString()])).toEqual([
          [FILE, "FROM docker.io/library/debian:13\n"],
        ]);
        const { key } = yield* source({ [FILE]: json(IMAGE), "a.txt": "b", ...DOCKERFILE });
        expect(key).toBe(built.key);
      }),
    ),
  );

  it.effect("has another key only if the build reads something else", () =>
    inTwin(
      Effect.gen(function* () {
        const { source } = yield* scene;
        const keyOf = (file: object, more: Files = {}) =>
          Effect.map(source({ [FILE]: json(file), ...DOCKERFILE, ...more }), ({ key }) => key);
        for (const context of [".", ".."]) {
          const build = { ...BUILD.build, context };
          const key = yield* keyOf({ build });
          const same = {
            customizations: { vscode: { extensions: ["x"] } },
            containerEnv: { A: "a" },
            postCreateCommand: "make",
            remoteUser: "dev",
          };
          expect(yield* keyOf({ ...same, build }), context).toBe(key);
          const changed = [
            yield* keyOf({ build: { ...build, target: "dev" } }),
            yield* keyOf({ build: { ...build, args: { A: "1" } } }),
            yield* keyOf({ build }, { ".devcontainer/more.txt": "m" }),
            yield* keyOf({ build }, { ".devcontainer/Dockerfile": "FROM debian:12\n" }),
            yield* keyOf(IMAGE),
          ];
          expect(new Set([key, ...changed]).size, context).toBe(changed.length + 1);
          const elsewhere = yield* keyOf({ build }, { "src/a.ts": "a" });
          expect(elsewhere === key, context).toBe(context === ".");
        }
      }),
    ),
  );

  it.effect("shows a build its context without the devcontainer.json", () =>
    inTwin(
      Effect.gen(function* () {
        const { source, files } = yield* scene;
        const all = { [FILE]: json(BUILD), ...DOCKERFILE, "src/devcontainer.json": "{}" };
        const page = yield* files(yield* source(all));
        expect(page?.entries.map(({ path }) => path)).toEqual(["Dockerfile"]);
        const build = { dockerfile: "Dockerfile", context: ".." };
        const whole = yield* files(yield* source({ ...all, [FILE]: json({ build }) }));
        expect(whole?.entries.map(({ path }) => path)).toEqual([
          ".devcontainer/Dockerfile",
          "src/devcontainer.json",
        ]);
      }),
    ),
  );

  it.effect("has the file's variables and commands, and the manifest's secrets", () =>
    inTwin(
      Effect.gen(function* () {
        const { source } = yield* scene;
        const file = { ...BUILD, containerEnv: { A: "a" }, postCreateCommand: "make", remoteUser: "dev" };
        const environment = { devcontainer: FILE, secrets: ["NPM_TOKEN"], setup: "npm ci" };
        const {
          commit: _,
          key: __,
          ...built
        } = yield* source({ [FILE]: json(file), ...DOCKERFILE }, environment);
        expect(built).toEqual({
          dockerfile: ".devcontainer/Dockerfile",
          context: ".devcontainer",
          target: null,
          args: {},
          secrets: ["NPM_TOKEN"],
          devcontainer: {
            path: FILE,
            image: null,
            variables: { A: "a" },
            commands: ["postCreateCommand"],
            setup: "echo '# postCreateCommand'\nsh -c 'make'\n",
            ignored: ["remoteUser"],
          },
        });
      }),
    ),
  );

  it.effect("learns why the file cannot be used", () =>
    inTwin(
      Effect.gen(function* () {
        const { read } = yield* scene;
        const large = `${json(IMAGE)}${" ".repeat(DEVCONTAINER_LIMIT_BYTES)}`;
        for (const [files, reason] of [
          [{}, `The repository has no file ${FILE}.`],
          [{ [FILE]: '{"a": 1' }, `${FILE}, line 1, column 8: The file is not valid JSON with comments`],
          [{ [FILE]: json({ ...IMAGE, features: { a: {} } }) }, "`features` is not supported."],
          [{ [FILE]: { symlink: "/etc/passwd" } }, `${FILE}: It is a directory or a link`],
          [{ [`${FILE}/x`]: "x" }, `${FILE}: It is a directory or a link`],
          [{ [FILE]: large }, `${FILE}: The file is larger than ${DEVCONTAINER_LIMIT_BYTES} bytes.`],
        ] as const)
          expect(Result.getFailure(yield* read(files)).valueOrUndefined).toContain(reason);
      }),
    ),
  );
});

describe("a project without the entry in platform.toml", () => {
  it.effect("does not use its devcontainer.json", () =>
    inTwin(
      Effect.gen(function* () {
        const { read } = yield* scene;
        for (const file of [json(IMAGE), "{"])
          expect(yield* read({ [FILE]: file, ...DOCKERFILE }, {})).toEqual(Result.succeed(null));
      }),
    ),
  );

  it.effect("learns that it has one, and whether it could be used", () =>
    inTwin(
      Effect.gen(function* () {
        const { repository, commitOf } = yield* scene;
        const unused = (files: Files) =>
          Effect.flatMap(commitOf(files), (commit) => unusedDevcontainer({ repository, commit }));
        expect(yield* unused({})).toBe(null);
        expect(yield* unused({ [FILE]: json(IMAGE) })).toEqual({ path: FILE, problem: null });
        expect(yield* unused({ [FILE]: json({}) })).toMatchObject({
          problem: expect.stringContaining("names neither an `image` nor a Dockerfile") as string,
        });
        const missing = { repository: { projectId: randomUUID() }, commit: "c".repeat(40) };
        expect(yield* unusedDevcontainer(missing)).toBe(null);
      }),
    ),
  );
});

describe("a project with a Dockerfile", () => {
  it.effect("uses the default one only if it exists, and a named one always", () =>
    inTwin(
      Effect.gen(function* () {
        const { read, source, files } = yield* scene;
        expect(yield* read({}, {})).toEqual(Result.succeed(null));
        expect(yield* read({}, { image: "tools" })).toEqual(Result.succeed(null));
        const all = { ".platform/Dockerfile": "FROM a\n", ".platform/devcontainer.json": "{}" };
        const built = yield* source(all, {});
        expect(built).not.toHaveProperty("devcontainer");
        expect((yield* files(built))?.entries.map(({ path }) => path)).toEqual([
          "Dockerfile",
          "devcontainer.json",
        ]);
        expect(yield* files(yield* source({}, { dockerfile: "none/Dockerfile" }))).toBe(null);
      }),
    ),
  );
});
