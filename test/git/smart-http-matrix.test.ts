/** Who may push which ref, and how: every cell with native git over a real server (threats.md G09). */
import { describe, expect, it } from "vitest";
import { git, gitOk } from "./git-client.ts";
import { commit, objects, scene, tip, url, useScene } from "./scene.ts";

useScene();

/** One cell of the refusal matrix: who pushes what, and whether git takes it. */
interface Push {
  readonly who: "session" | "person";
  readonly what: string;
  readonly spec: () => string;
  readonly force?: boolean;
  readonly accepted: boolean;
}

const neighbour = "0190a5a0-0000-7000-8000-0000000000aa";
const matrix: readonly Push[] = [
  {
    who: "session",
    what: "its own branch forward",
    spec: () => `HEAD:refs/heads/${scene.session}`,
    accepted: true,
  },
  {
    who: "session",
    what: "its own branch back",
    spec: () => `HEAD~2:refs/heads/${scene.session}`,
    force: true,
    accepted: false,
  },
  {
    who: "session",
    what: "a deletion of its own branch",
    spec: () => `:refs/heads/${scene.session}`,
    accepted: false,
  },
  { who: "session", what: "its own wip ref", spec: () => `HEAD:refs/wip/${scene.session}`, accepted: true },
  { who: "session", what: "the default branch", spec: () => "HEAD:refs/heads/main", accepted: false },
  { who: "session", what: "a new branch", spec: () => "HEAD:refs/heads/feature", accepted: false },
  {
    who: "session",
    what: "another session's branch",
    spec: () => `HEAD:refs/heads/${neighbour}`,
    accepted: false,
  },
  {
    who: "session",
    what: "another session's wip ref",
    spec: () => `HEAD:refs/wip/${neighbour}`,
    accepted: false,
  },
  { who: "session", what: "a tag", spec: () => "HEAD:refs/tags/v1", accepted: false },
  { who: "session", what: "a note", spec: () => "HEAD:refs/notes/commits", accepted: false },
  {
    who: "session",
    what: "a branch below its own name",
    spec: () => `HEAD:refs/heads/${scene.session}/x`,
    accepted: false,
  },
  { who: "person", what: "a new branch", spec: () => "HEAD:refs/heads/feature", accepted: true },
  { who: "person", what: "a branch back", spec: () => "HEAD~2:refs/heads/old", force: true, accepted: true },
  { who: "person", what: "a deletion of a branch", spec: () => ":refs/heads/old", accepted: true },
  { who: "person", what: "a tag", spec: () => "HEAD:refs/tags/v1", accepted: true },
  { who: "person", what: "the default branch forward", spec: () => "HEAD:refs/heads/main", accepted: false },
  {
    who: "person",
    what: "the default branch back",
    spec: () => "HEAD~2:refs/heads/main",
    force: true,
    accepted: false,
  },
  {
    who: "person",
    what: "a deletion of the default branch",
    spec: () => ":refs/heads/main",
    accepted: false,
  },
  {
    who: "person",
    what: "a session's branch forward",
    spec: () => `HEAD:refs/heads/${scene.session}`,
    accepted: true,
  },
  {
    who: "person",
    what: "a session's branch back",
    spec: () => `HEAD~2:refs/heads/${scene.session}`,
    force: true,
    accepted: false,
  },
  {
    who: "person",
    what: "a deletion of a session's branch",
    spec: () => `:refs/heads/${scene.session}`,
    accepted: false,
  },
  {
    who: "person",
    what: "a new branch named like a session",
    spec: () => `HEAD:refs/heads/${neighbour}`,
    accepted: false,
  },
  { who: "person", what: "a branch named like an option", spec: () => "HEAD:refs/heads/-x", accepted: false },
  { who: "person", what: "a note", spec: () => "HEAD:refs/notes/commits", accepted: false },
  {
    who: "person",
    what: "a session's wip ref",
    spec: () => `HEAD:refs/wip/${scene.session}`,
    accepted: false,
  },
];

describe("the refusal matrix", () => {
  it.each(matrix)("$who pushes $what: accepted $accepted [G09]", async ({ who, spec, force, accepted }) => {
    await gitOk(scene.work, "push", "--quiet", scene.bare, "HEAD:refs/heads/old");
    await commit("change.txt");
    const [source = "", ref = ""] = spec().split(":");
    const before = await tip(ref);
    const stored = await objects();
    const password = who === "session" ? scene.session : scene.person;
    const pushed = await git(
      scene.work,
      "push",
      ...(force === true ? ["--force"] : []),
      url(password),
      spec(),
    );
    if (accepted) {
      expect(pushed).toMatchObject({ code: 0 });
      expect(await tip(ref)).toBe(source === "" ? "" : await gitOk(scene.work, "rev-parse", source));
      return;
    }
    expect(pushed.code).not.toBe(0);
    expect(pushed.stderr).toMatch(/remote: .+/);
    expect(pushed.stderr).toMatch(/\[remote rejected\]/);
    expect(await tip(ref)).toBe(before);
    expect(await objects()).toBe(stored);
  });
});
