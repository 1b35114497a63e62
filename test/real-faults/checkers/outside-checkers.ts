/** Invariants of the list of threats over what lies outside the database: sandboxes, branches, credentials, secrets. */
import { isWithin, ownCommits } from "../refs.ts";
import { doubled, isLive, isLiveSandbox, type Checker } from "../seen.ts";

/**
 * I8: every session that had a sandbox has its branch, at the recorded base or pushed beyond; commits that git
 * accepted are kept, and saved work is as well.
 */
export const branches: Checker = async ({ tables: { sessions, sandboxes }, refs, books }) => {
  const booted = new Set(sandboxes.map(({ sessionId }) => sessionId));
  const found = sessions.map(async ({ id, baseCommit, saved }) => {
    const tip = refs.tips.get(`refs/heads/${id}`);
    const lost: string[] = [];
    if (booted.has(id) && (tip === undefined || baseCommit === null))
      return [`I8 session ${id} had a sandbox and has no branch`];
    for (const commit of tip === undefined ? [] : [baseCommit ?? tip, ...(books.pushed.get(id) ?? [])])
      if (!(await isWithin(refs, commit, tip ?? "")))
        lost.push(`I8 the branch of session ${id} does not hold ${commit}`);
    const wip = refs.tips.get(`refs/wip/${id}`);
    if (
      saved?.wip !== null &&
      saved?.wip !== undefined &&
      (wip === undefined || !(await isWithin(refs, saved.wip, wip)))
    )
      lost.push(`I8 the saved work of session ${id} is not on its ref`);
    return lost;
  });
  return (await Promise.all(found)).flat();
};

/** I9, I10: every existing sandbox has a live record, and every live record has its sandbox. */
export const sandboxes: Checker = ({ tables, machine, nodeId }) => {
  const own = tables.sandboxes.filter((row) => row.nodeId === nodeId);
  const live = new Map(own.filter(isLiveSandbox).map((row) => [row.id, row]));
  const sessionOf = new Map(tables.sessions.map((row) => [row.id, row]));
  const running = machine.sandboxes.filter(({ pids }) => pids.length > 0);
  const present = new Set(running.map(({ id }) => id));
  const recordOf = new Map(own.map(({ id, status }) => [id, status]));
  return [
    ...machine.sandboxes.flatMap(({ id, pids, mounts, groups, hasDirectory }) =>
      live.has(id)
        ? mounts > 0
          ? [`I9 the sandbox ${id} is mounted on the machine itself`]
          : []
        : [
            `I9 of the sandbox ${id} there are ${pids.length} processes, ${mounts} mounts, ${groups} control groups and ${hasDirectory ? "a" : "no"} directory; its record is ${recordOf.get(id) ?? "missing"}`,
          ],
    ),
    ...[...live.values()].flatMap(({ id, status, sessionId }) => {
      const session = sessionOf.get(sessionId);
      if (session === undefined || !isLive(session))
        return [`I9 the record of sandbox ${id} is ${status}, its session ${session?.status ?? "gone"}`];
      return status === "active" && !present.has(id)
        ? [`I9 the sandbox ${id} is active and has no process`]
        : [];
    }),
    ...doubled(running, ({ sessionId }) => sessionId).map(
      (id) => `I10 session ${id} has more than one sandbox`,
    ),
  ];
};

/** I15: credentials open what they are for as long as their sandbox lives, and nothing afterwards. */
export const credentials: Checker = ({ tables, opened }) => {
  const live = new Set(tables.sandboxes.filter(isLiveSandbox).map(({ id }) => id));
  return opened.flatMap(({ sandboxId, what, opens }) => {
    if (opens === live.has(sandboxId)) return [];
    return [
      `I15 ${what} of the ${opens ? "ended" : "live"} sandbox ${sandboxId} is ${opens ? "taken" : "refused"}`,
    ];
  });
};

/** I16. */
export const plaintexts: Checker = ({ plaintext }) =>
  plaintext.map((place) => `I16 a secret stands in ${place}`);

/** I17: the default branch went forward by merges alone. */
export const defaultBranch: Checker = async ({ tables, refs, books }) => {
  const found = tables.projects.map(async ({ id, branch }) => {
    const tip = refs.tips.get(`refs/heads/${branch}`);
    const began = books.began.get(id);
    if (tip === undefined || began === undefined) return [`I17 project ${id} has no default branch`];
    if (!(await isWithin(refs, began, tip)))
      return [`I17 the default branch of ${id} was moved away from ${began}`];
    const merges = tables.merges.filter(({ projectId }) => projectId === id);
    const heads = [...new Set(merges.map(({ head }) => head))];
    const faults: string[] = [];
    // A merge brings a session's commits, and one of its own where the branch had moved meanwhile.
    for (const { commit, parents } of await ownCommits(refs, { from: began, to: tip, heads }))
      if (parents.length !== 2 || !heads.includes(parents[1] ?? ""))
        faults.push(`I17 the default branch of ${id} holds ${commit}, which no merge has brought`);
    for (const { commit } of merges)
      if (commit !== null && !(await isWithin(refs, commit, tip)))
        faults.push(`I17 the merge ${commit} is not on the default branch of ${id}`);
    return faults;
  });
  return (await Promise.all(found)).flat();
};
