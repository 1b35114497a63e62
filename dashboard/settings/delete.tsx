/** The end of a project: what goes with it, and the name that its owner types. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { counted, moment, size } from "../elements/format.ts";
import { notice } from "../frame/notices.ts";
import { Restore } from "../projects/acts.tsx";
import { Form, TextField } from "../ui/form.tsx";

/** Beyond so many sessions, the page says "at least". */
const COUNTED_MAX = 200;

type Saves = Answer<"GET /v1/projects/:pid/saves">;
type Session = Answer<"GET /v1/projects/:pid/sessions">["sessions"][number];

const sessionsQuery = (pid: string) =>
  queryOptions({
    queryKey: ["sessions that a deletion takes", pid],
    queryFn: () =>
      request("GET /v1/projects/:pid/sessions", { params: { pid }, query: { limit: COUNTED_MAX } }),
    staleTime: 0,
  });

/** Its branch has commits that no merged change request has. */
const isUnmerged = ({ changes, change_request: proposed }: Session): boolean =>
  (changes?.files ?? 0) > 0 && proposed?.status !== "merged";

const WhatGoes = ({ project: { id: pid, repository }, saves }: Shown) => {
  const { data } = useQuery(sessionsQuery(pid));
  if (data === undefined) return null;
  const least = data.next_cursor === null ? "" : "at least ";
  const unmerged = data.sessions.filter(isUnmerged).length;
  const isHosted = repository.kind === "hosted";
  return (
    <ul className="what-goes">
      <li>{`${least}${counted(data.sessions.length, "session")} with conversations and logs`}</li>
      {isHosted && <li>the repository, which is hosted here and nowhere else</li>}
      {isHosted && unmerged > 0 && (
        <li>
          <strong>{`${least}${counted(unmerged, "branch", "branches")} with work that is not merged`}</strong>
        </li>
      )}
      {saves !== null && saves.sessions.length > 0 && (
        <li>
          <strong>{`saved work of ${counted(saves.sessions.length, "session")}, ${size(saves.bytes)}`}</strong>
        </li>
      )}
      <li>change requests, triggers, runs, secrets, connectors, members and built environments</li>
    </ul>
  );
};

interface Shown {
  readonly project: Project;
  /** Null: the node that has the saves cannot be reached. */
  readonly saves: Saves | null;
}

export const DeletePart = ({ project, saves }: Shown) => {
  const { id: pid, name } = project;
  if (project.deletes_at !== null)
    return (
      <>
        <p>
          {`The project is deleted. It will be gone, with everything in it, on ${moment(project.deletes_at)}. Until then, it can be restored.`}
        </p>
        <p className="actions">
          <Restore project={project} label="Restore the project" />
        </p>
      </>
    );
  const remove = async ({ typed = "" }: Readonly<Record<string, string>>): Promise<void> => {
    if (typed !== name.trim()) throw new Error(`Type ${name} to delete this project.`);
    await request("DELETE /v1/projects/:pid", { params: { pid } });
    notice(`${name} is deleted. It can be restored for seven days.`);
  };
  return (
    <>
      <p>
        The project starts nothing more, and its running sessions stop with their work saved. For seven days,
        its owners can restore it. Then all of this is gone for good:
      </p>
      <WhatGoes project={project} saves={saves} />
      {project.repository.kind !== "hosted" && <p>The repository on the other server stays as it is.</p>}
      <Form key={name} submit="Delete the project" sending="Deleting…" danger onSend={remove}>
        <TextField name="typed" label={`Type ${name} to confirm`} required />
      </Form>
    </>
  );
};
