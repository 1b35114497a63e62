/**
 * Imports an image's archive (unpack/archive.ts says which). The archive is untrusted: it is unpacked by a program of
 * ours in a sandbox that has no network, no privilege, and only the new directory to write. The image's root is that
 * program's own root, so no path in the archive leads to anything else.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as Schema from "effect/Schema";
import { type Image, ImageFacts } from "./image.ts";
import type { ImageStore } from "./store.ts";

/** The host user that unpacks for a root service. It is outside of all sandboxes' users. */
const UNPACK_UID = 299_998_000;
/** An image may have so much. */
const LIMITS = { bytes: 32 * 1024 ** 3, files: 2_000_000 };
const TIMEOUT_MS = 30 * 60_000;
/** The memory of the program, MiB. It holds no file of the archive as a whole. */
const HEAP_MIB = 512;
/** How much of its output is read. */
const OUTPUT_MAX = 1024 * 1024;

const LIBRARY = "/opt/platform/lib";
const SCRATCH = "/opt/platform/scratch";

const Said = Schema.fromJsonString(Schema.Union([Schema.Struct({ failure: Schema.String }), ImageFacts]));

export interface ImportOptions {
  readonly store: ImageStore;
  /** The runtime bundle's directory. */
  readonly bundle: string;
  /** bubblewrap's program. */
  readonly bwrap: string;
  /** The text of the program that unpacks (sandbox-programs.ts). */
  readonly unpacker: string;
  readonly limits?: { readonly bytes: number; readonly files: number };
}

/**
 * Imports the archive in `file` under a name.
 * @throws Error that says what is wrong with the archive or the machine
 */
export const importImage = (
  { store, bundle, bwrap, unpacker, limits = LIMITS }: ImportOptions,
  { name, file }: { readonly name: string; readonly file: string },
): Promise<Image> =>
  store.add(name, async (draft) => {
    const archive = await open(file, "r");
    try {
      const program = join(draft, "unpack.cjs");
      await writeFile(program, unpacker);
      for (const part of ["root", "scratch"]) {
        // eslint-disable-next-line no-await-in-loop -- two
        await mkdir(join(draft, part));
        // eslint-disable-next-line no-await-in-loop -- two
        await chmod(join(draft, part), 0o755);
        // eslint-disable-next-line no-await-in-loop -- two
        if (process.geteuid?.() === 0) await chown(join(draft, part), UNPACK_UID, UNPACK_UID);
      }
      const [command = "", ...args] = unpackCommand({ bwrap, bundle, draft, limits });
      const report = await runToEnd(command, args, archive.fd);
      await Promise.all([rm(program), rm(join(draft, "scratch"), { recursive: true, force: true })]);
      if ("failure" in report) throw new Error(`${file} cannot be imported: ${report.failure}`);
      return report;
    } finally {
      await archive.close();
    }
  });

interface Unpacking {
  readonly bwrap: string;
  readonly bundle: string;
  readonly draft: string;
  readonly limits: { readonly bytes: number; readonly files: number };
}

const unpackCommand = ({ bwrap, bundle, draft, limits }: Unpacking): string[] => [
  bwrap,
  "--unshare-user",
  "--uid",
  "0",
  "--gid",
  "0",
  "--unshare-ipc",
  "--unshare-pid",
  "--unshare-net",
  "--unshare-uts",
  "--die-with-parent",
  "--new-session",
  "--clearenv",
  // Over its own files only: it must write into directories whose mode forbids that.
  "--cap-add",
  "CAP_DAC_OVERRIDE",
  "--cap-add",
  "CAP_FOWNER",
  "--bind",
  join(draft, "root"),
  "/",
  "--tmpfs",
  "/opt/platform",
  "--ro-bind",
  join(bundle, "gnu"),
  `${LIBRARY}/gnu`,
  "--ro-bind",
  join(bundle, "tools/node"),
  `${LIBRARY}/node`,
  "--ro-bind",
  join(draft, "unpack.cjs"),
  `${LIBRARY}/unpack.cjs`,
  "--bind",
  join(draft, "scratch"),
  SCRATCH,
  "--chdir",
  "/",
  "--",
  `${LIBRARY}/node`,
  `--max-old-space-size=${HEAP_MIB}`,
  `${LIBRARY}/unpack.cjs`,
  SCRATCH,
  String(limits.bytes),
  String(limits.files),
];

/** Runs the program with the archive as its standard input. */
const runToEnd = async (
  command: string,
  args: readonly string[],
  archive: number,
): Promise<typeof Said.Type> => {
  const isRoot = process.geteuid?.() === 0;
  const child = spawn(command, args, {
    cwd: "/",
    env: {},
    stdio: [archive, "pipe", "pipe"],
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
    ...(isRoot && { uid: UNPACK_UID, gid: UNPACK_UID }),
  });
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream]?.on("data", (chunk: Buffer) => {
      if (output[stream].length < OUTPUT_MAX) output[stream] += chunk.toString();
    });
  }
  await once(child, "close");
  const [line = ""] = output.stdout.trim().split("\n").slice(-1);
  try {
    return Schema.decodeUnknownSync(Said)(line);
  } catch {
    const why = output.stderr.trim().split("\n").at(-1) ?? "";
    return {
      failure: `the program that unpacks it ended early${why === "" ? "" : ` (${why.slice(0, 300)})`}`,
    };
  }
};
