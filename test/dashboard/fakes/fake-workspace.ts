/** The fake's workspaces: what they have changed, and their files. */
import type { FakeSettings } from "./fake-settings.ts";

type Json = Readonly<Record<string, unknown>>;

export interface FakeWorkspace {
  /** Of every running session. Absent: it has what is pushed, and no files. */
  workspace?: {
    readonly changes: Json;
    readonly diff: string;
    /** Answers by path. */
    readonly files: Readonly<Record<string, Json>>;
  };
}

const pushedOnly = ({ work }: FakeSettings) => {
  const files = (work?.changes["files_changed"] ?? []) as readonly Json[];
  return {
    base_commit: "1".repeat(40),
    pushed_commit: "2".repeat(40),
    head_commit: "2".repeat(40),
    unpushed_commits: 0,
    uncommitted_total: 0,
    unpushed_total: 0,
    files_changed_total: work?.changes["files_changed_total"] ?? 0,
    files_changed: files.map((file) => Object.assign({ status: "modified", state: "pushed" }, file)),
  };
};

/** @param rest the path below the project */
export const workspaceAnswer = (
  world: FakeSettings & FakeWorkspace,
  rest: string,
  query: URLSearchParams,
): Json | string | undefined => {
  const path = query.get("path");
  if (rest.endsWith("/changes")) return world.workspace?.changes ?? pushedOnly(world);
  if (rest.endsWith("/files")) return world.workspace?.files[path ?? ""];
  const diff = world.workspace?.diff ?? world.work?.diff;
  if (path === null) return diff;
  return diff?.split(/(?=^diff --git )/m).find((file) => file.includes(` b/${path}\n`)) ?? "";
};
