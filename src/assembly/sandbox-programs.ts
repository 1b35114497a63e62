/** The programs that sandboxes of this machine run, made of the clone's sources: the daemon, the command line, and what unpacks an image. */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { bundleDaemon } from "../../daemon/bundle/bundle.ts";
import { writeCodeCache } from "../../daemon/bundle/code-cache.ts";
import { keptFile, madeOnce } from "../ground/build-cache.ts";
import { bundleCommandLine } from "./command-line-bundle.ts";

/** Files in the data directory. */
export interface SandboxPrograms {
  readonly daemonBundle: string;
  /** V8's compiled form of the daemon. Null if it could not be made, and sandboxes start more slowly. */
  readonly daemonCodeCache: string | null;
  readonly commandLine: string;
}

/** Bundles a program into `outFile`, unless an earlier start did. @param bundle returns the files that it was made of */
const bundleProgram = async (
  name: string,
  outFile: string,
  bundle: (outFile: string) => Promise<readonly string[]>,
): Promise<void> => {
  const text = await madeOnce({
    file: keptFile(name),
    key: "",
    schema: Schema.String,
    make: async () => {
      const inputs = await bundle(outFile);
      return { value: await readFile(outFile, "utf8"), inputs: [...inputs, import.meta.filename] };
    },
  });
  await writeFile(outFile, text);
};

/** The code cache is Node's own, and differs between its versions. */
const compileBundle = async (bundle: string, outFile: string): Promise<void> => {
  const hash = createHash("sha256")
    .update(await readFile(bundle))
    .digest("hex");
  const code = await madeOnce({
    file: keptFile("daemon's code"),
    key: [process.version, process.arch, hash].join(),
    schema: Schema.Uint8ArrayFromBase64,
    make: async () => {
      await writeCodeCache(process.execPath, bundle, outFile);
      return { value: new Uint8Array(await readFile(outFile)), inputs: [] };
    },
  });
  await writeFile(outFile, code);
};

/** Makes the programs, or takes those of an earlier start. */
export const sandboxPrograms = Effect.fnUntraced(function* (
  dataDir: string,
): Effect.fn.Return<SandboxPrograms> {
  const daemonBundle = path.join(dataDir, "platform-agent.cjs");
  const commandLine = path.join(dataDir, "platform.cjs");
  yield* Effect.promise(() =>
    Promise.all([
      bundleProgram("daemon", daemonBundle, async (outFile) => (await bundleDaemon(outFile)).inputs),
      bundleProgram("command line", commandLine, bundleCommandLine),
    ]),
  );
  const codeCache = `${daemonBundle}.cache`;
  const daemonCodeCache = yield* Effect.tryPromise(() => compileBundle(daemonBundle, codeCache)).pipe(
    Effect.as(codeCache),
    Effect.catch((error) =>
      Effect.as(
        Effect.logWarning("the daemon's code cache could not be created; sandboxes start more slowly", {
          error,
        }),
        null,
      ),
    ),
  );
  return { daemonBundle, daemonCodeCache, commandLine };
});

/** @returns the text of the program that unpacks an imported image in a sandbox */
export const unpackingProgram = (): Promise<string> =>
  madeOnce({
    file: keptFile("unpacker"),
    key: "",
    schema: Schema.String,
    make: async () => {
      const { build } = await import("esbuild");
      const { outputFiles, metafile } = await build({
        entryPoints: [path.join(import.meta.dirname, "../sandbox/images/unpack/main.ts")],
        write: false,
        metafile: true,
        bundle: true,
        platform: "node",
        format: "cjs",
        target: "node24",
        logLevel: "error",
      });
      const inputs = Object.keys(metafile.inputs).map((file) => path.resolve(file));
      const [{ text } = { text: "" }] = outputFiles;
      return { value: text, inputs: [...inputs, import.meta.filename] };
    },
  });
