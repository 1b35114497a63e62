/** Repositories of four shapes, the same in every run: what is in them comes from a fixed seed. */
import { spawn } from "node:child_process";
import { createCipheriv, createHash } from "node:crypto";
import { once } from "node:events";

export const SHAPES = ["small", "wide", "long", "large"] as const;
export type Shape = (typeof SHAPES)[number];

interface Size {
  readonly files: number;
  readonly bytesEach: number;
  readonly commits: number;
  /** Files that each commit after the first one rewrites. */
  readonly changedEach: number;
  /** Text packs to a fraction of its size; noise to none. */
  readonly content: "text" | "noise";
}

const KIB = 1024;
const FULL: Readonly<Record<Shape, Size>> = {
  small: { files: 200, bytesEach: 4 * KIB, commits: 1, changedEach: 0, content: "text" },
  wide: { files: 20_000, bytesEach: 4 * KIB, commits: 1, changedEach: 0, content: "text" },
  long: { files: 200, bytesEach: 4 * KIB, commits: 10_000, changedEach: 3, content: "text" },
  large: { files: 500, bytesEach: KIB * KIB, commits: 1, changedEach: 0, content: "noise" },
};

/** The shape with so many percent of its files and commits; the small one stays as it is. */
export const sizeOf = (shape: Shape, percent: number): Size => {
  const full = FULL[shape];
  if (shape === "small") return full;
  const part = (whole: number): number => Math.max(1, Math.round((whole * percent) / 100));
  return full.commits > 1 ? { ...full, commits: part(full.commits) } : { ...full, files: part(full.files) };
};

/** Bytes that look like noise, the same for the same name. */
const noise = (name: string, bytes: number): Buffer => {
  const key = createHash("sha256").update(name).digest();
  return createCipheriv("aes-256-ctr", key, Buffer.alloc(16)).update(Buffer.alloc(bytes));
};

const bytesOf = ({ content, bytesEach }: Size, name: string): Buffer => {
  if (content === "noise") return noise(name, bytesEach);
  // Words out of a small vocabulary: they pack as source text does, to about a quarter.
  const words = [...noise(name, Math.ceil(bytesEach / 6))].map((byte) => `word${byte % 64}`);
  return Buffer.from(
    words
      .join(" ")
      .replaceAll(/(?:\S+ ){12}/g, "$&\n")
      .slice(0, bytesEach),
  );
};

const block = (content: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`data ${content.length}\n`), content, Buffer.from("\n")]);

const fileName = (index: number): string => `src/${Math.floor(index / 100)}/file-${index % 100}.txt`;

/** The language of `git fast-import`, a commit at a time. */
function* commitsOf(size: Size): Generator<Buffer> {
  for (let commit = 0; commit < size.commits; commit += 1) {
    const message = block(Buffer.from(`Commit ${commit}`));
    const by = `committer Bench <bench@example.org> ${946_684_800 + commit} +0000\n`;
    yield Buffer.concat([Buffer.from(`commit refs/heads/main\n${by}`), message]);
    const count = commit === 0 ? size.files : size.changedEach;
    for (let n = 0; n < count; n += 1) {
      const name = fileName(commit === 0 ? n : (commit * size.changedEach + n) % size.files);
      yield Buffer.concat([
        Buffer.from(`M 100644 inline ${name}\n`),
        block(bytesOf(size, `${name} ${commit}`)),
      ]);
    }
  }
}

/** Fills an empty bare repository. */
export const fill = async (repository: string, size: Size): Promise<void> => {
  const git = spawn("git", ["fast-import", "--quiet"], {
    cwd: repository,
    stdio: ["pipe", "inherit", "inherit"],
  });
  const ended = once(git, "exit");
  for (const chunk of commitsOf(size)) {
    if (!git.stdin.write(chunk)) await once(git.stdin, "drain");
  }
  git.stdin.end();
  const [code] = (await ended) as [number];
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
};
