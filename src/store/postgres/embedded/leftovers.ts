/** Finds embedded Postgres servers whose service has ended, and their files in the temporary directory. */
import { readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import * as Effect from "effect/Effect";
import { livingOwner } from "../../data-directory.ts";
import { stopServer } from "./embedded.ts";

const attempt = <A>(look: () => A): A | null => {
  try {
    return look();
  } catch {
    return null; // It ended meanwhile, or belongs to another user.
  }
};

const link = (pid: number | "self", name: string): string | null =>
  attempt(() => readlinkSync(`/proc/${pid}/${name}`));

export interface LeftServer {
  readonly pid: number;
  readonly dataDir: string;
  /** The data directory was removed. */
  readonly isHomeless: boolean;
}

/** Whether its command line is the one with which the service starts it (embedded.ts). */
const isEmbedded = (pid: number): boolean => {
  const [program = "", option, directory] = (
    attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? ""
  ).split("\0");
  return basename(program) === "postgres" && option === "-D" && directory === "/proc/self/fd/3";
};

/** Whether the process that started it still exists. */
const hasStarter = (pid: number): boolean => {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8")) ?? "";
  const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  return parent > 1 && basename(link(parent, "exe") ?? "") === "node";
};

const DELETED = " (deleted)";

const findServer = (pid: number): LeftServer | null => {
  const cwd = link(pid, "cwd");
  if (cwd === null) return null;
  const isHomeless = cwd.endsWith(DELETED);
  return { pid, dataDir: dirname(isHomeless ? cwd.slice(0, -DELETED.length) : cwd), isHomeless };
};

/** Whether it runs in this process's namespaces. Processes in a container belong to the container. */
const isOurs = (pid: number): boolean =>
  ["ns/pid", "ns/mnt"].every((name) => link(pid, name) === link("self", name));

export const leftServers = async (): Promise<readonly LeftServer[]> => {
  const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  const servers = pids.filter((pid) => isEmbedded(pid) && isOurs(pid) && !hasStarter(pid));
  const candidates = await Promise.all(
    servers.map(async (pid) => {
      const server = findServer(pid);
      if (server === null || server.isHomeless) return server;
      return (await livingOwner(server.dataDir).catch(() => 0)) === null ? server : null;
    }),
  );
  return candidates.filter((server) => server !== null);
};

/** Ends a server whose directory this process owns, or is gone. */
export const endServer = ({ pid }: LeftServer): Promise<void> => Effect.runPromise(stopServer(pid));

/** Short links to data directories without a service. @returns their directories, with their targets */
export const leftLinks = async (): Promise<
  readonly { readonly path: string; readonly dataDir: string }[]
> => {
  const names = (attempt(() => readdirSync(tmpdir())) ?? []).filter((name) =>
    /^platform-pg-\w{6}$/.test(name),
  );
  const directories = await Promise.all(
    names.map(async (name) => {
      const path = join(tmpdir(), name);
      const target = attempt(() => readlinkSync(join(path, "d")));
      if (target === null) return null;
      const dataDir = dirname(target);
      const isThere = attempt(() => realpathSync(dataDir)) !== null;
      return isThere && (await livingOwner(dataDir).catch(() => 0)) !== null ? null : { path, dataDir };
    }),
  );
  return directories.filter((one) => one !== null);
};

export const removeLink = (path: string): void => rmSync(path, { recursive: true, force: true });
