/** Who has which role in a project. Its owners give and remove roles. */
import type { Answer } from "../../src/cli/contract.ts";
import { ApiError } from "../api/api.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { ask } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { knownRole, lackedRole, ROLE_OPTIONS } from "../frame/roles.ts";
import { Act } from "../ui/act.tsx";
import { Form, SelectField, TextField } from "../ui/form.tsx";
import { Detail, Row, Tag } from "../ui/parts.tsx";

type Member = Answer<"GET /v1/projects/:pid/members">["members"][number];
type Person = Member["user"];
type Typed = Readonly<Record<string, string>>;

export interface Members {
  readonly members: readonly Member[];
  /** Who can get a role. */
  readonly everyone: readonly Person[];
}

/** A token of one project reads no list of people. */
const readPeople = async (): Promise<readonly Person[] | null> => {
  try {
    return (await request("GET /v1/people", { query: { limit: 200 } })).people;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return null;
    throw error;
  }
};

export const readMembers = async (pid: string): Promise<Members> => {
  const [{ members }, people] = await Promise.all([
    request("GET /v1/projects/:pid/members", { params: { pid } }),
    readPeople(),
  ]);
  return { members, everyone: people ?? members.map(({ user }) => user) };
};

const reason = ({ user, role, own_role: own }: Member): string => {
  if (user.role === "owner") return "owner of the account";
  if (own === role) return "own role";
  return `the project's default role${own === null ? "" : `, which is higher than the own role ${own}`}`;
};

const remove = async (pid: string, { id, name }: Person): Promise<void> => {
  const sure = await ask({
    title: `Remove the own role of ${name}?`,
    text: "The project's default role stays. It counts for this person, too.",
    confirm: "Remove",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/projects/:pid/members/:id", { params: { pid, id } });
  notice(`The own role of ${name} was removed.`);
};

const MemberForm = ({ pid, others }: { readonly pid: string; readonly others: readonly Person[] }) => {
  const set = async ({ person = "", role }: Typed): Promise<void> => {
    const payload = { role } as { readonly role: Member["role"] };
    await request("PUT /v1/projects/:pid/members/:id", { params: { pid, id: person }, payload });
    notice("The role is set.");
  };
  return (
    <Form submit="Set the role" sending="Saving…" onSend={set}>
      <SelectField name="person" label="Person" options={others.map(({ id, name }) => [id, name])} />
      <SelectField
        name="role"
        label="Role"
        hint="The highest role counts: the person's own one, or the default role below."
        options={ROLE_OPTIONS}
      />
    </Form>
  );
};

const DEFAULT_WORDS = [
  ["viewer", "Viewer"],
  ["member", "Member"],
  ["", "No role: the project is hidden"],
] as const;
const MERGE_WORDS = [
  ["member", "Members and owners"],
  ["owner", "Only owners"],
] as const;

const RolesForm = ({ project }: { readonly project: Project }) => {
  const { id: pid, default_role: role, merge_role: merge, approvals_required: approvals } = project;
  const save = async ({ default_role = "", merge_role, approvals_required = "0" }: Typed): Promise<void> => {
    const wanted = Number(approvals_required);
    const payload = {
      default_role: default_role === "" ? null : default_role,
      merge_role,
      ...(wanted !== approvals && { approvals_required: wanted }),
    } as Pick<Project, "default_role" | "merge_role">;
    await request("PATCH /v1/projects/:pid", { params: { pid }, payload });
    notice("The roles are saved.");
  };
  return (
    <Form key={`${role} ${merge} ${approvals}`} submit="Save the roles" sending="Saving…" onSend={save}>
      <SelectField
        name="default_role"
        label="Default role"
        hint="Of all people of the account who have no higher role here."
        initial={role ?? ""}
        options={DEFAULT_WORDS}
      />
      <SelectField name="merge_role" label="Who may merge" initial={merge} options={MERGE_WORDS} />
      <TextField
        name="approvals_required"
        label="Approvals before a merge"
        hint="How many people must approve a change request's newest commit, 0 to 10. Its author does not count."
        type="number"
        initial={String(approvals)}
        required
      />
    </Form>
  );
};

export const MembersPart = ({ project, found }: { readonly project: Project; readonly found: Members }) => {
  const governs = lackedRole("set-member") === null;
  // An owner of the account has each role.
  const others = found.everyone.filter(({ role, deactivated_at: left }) => role !== "owner" && left === null);
  return (
    <>
      <ul className="rows">
        {found.members.map((member) => (
          <Row
            key={member.user.id}
            states={<Tag>{member.role}</Tag>}
            actions={
              governs && member.own_role !== null ? (
                <Act label="Remove" about={member.user.name} does={() => remove(project.id, member.user)} />
              ) : undefined
            }
          >
            <strong>{member.user.name}</strong>
            <Detail>{reason(member)}</Detail>
          </Row>
        ))}
      </ul>
      {/* An owner of the account has no role that the page needs to know. */}
      {knownRole() === null ? (
        <p>
          <a href="#/people">Invite somebody to the account</a>
        </p>
      ) : (
        governs && (
          <p className="quiet">
            Somebody who is not listed needs an invitation from an owner of the account.
          </p>
        )
      )}
      {governs && others.length > 0 && (
        <>
          <h3>Give a role</h3>
          <MemberForm pid={project.id} others={others} />
        </>
      )}
      {governs && (
        <>
          <h3>Everyone else</h3>
          <RolesForm project={project} />
        </>
      )}
    </>
  );
};
