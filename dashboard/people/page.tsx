/** The people of the account and its open invitations. An owner invites, changes roles, and deactivates. */
import { queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../src/cli/contract.ts";
import { ApiError } from "../api/api.ts";
import { request } from "../api/client.ts";
import { pagedQuery } from "../api/lists.ts";
import { projectsQuery } from "../api/projects.ts";
import { queries } from "../api/queries.ts";
import { ask, tell } from "../frame/dialog.ts";
import { notice } from "../frame/notices.ts";
import { ROLE_OPTIONS } from "../frame/roles.ts";
import { Act } from "../ui/act.tsx";
import { FieldGroup, Form, SelectField, TextField } from "../ui/form.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Detail, More, Row, Tag, Time } from "../ui/parts.tsx";
import { join, joined } from "./join.tsx";

type Person = Answer<"GET /v1/people">["people"][number];
type Invitation = Answer<"GET /v1/invitations">["invitations"][number];
type Project = Answer<"GET /v1/projects">["projects"][number];

const peopleQuery = pagedQuery(["people", "list"], (query) => request("GET /v1/people", { query }));

const invitationsQuery = queryOptions({
  queryKey: ["invitations"],
  queryFn: async () => {
    try {
      return (await request("GET /v1/invitations", { query: { limit: 200 } })).invitations;
    } catch (error) {
      // Only owners may read them.
      if (error instanceof ApiError && error.status === 403) return [];
      throw error;
    }
  },
});

const setRole = async ({ id, name }: Person, role: Person["role"]): Promise<void> => {
  const sure = await ask({
    title: `Make ${name} ${role} of the account?`,
    text:
      role === "owner"
        ? "An owner may do everything in each project, and manages people."
        : "From now on, the person's own role in each project counts, or the project's default role.",
    confirm: `Make ${role}`,
  });
  if (sure === null) return;
  await request("PATCH /v1/people/:id", { params: { id }, payload: { role } });
  notice(`${name} is now ${role} of the account.`);
};

const deactivate = async ({ id, name }: Person, isReader: boolean): Promise<void> => {
  const sure = await ask({
    title: `Deactivate ${name}?`,
    text:
      `${isReader ? "This is you: you will be signed out. " : ""}The person's tokens end at once, with everything that they opened. ` +
      "Running sessions of the person save their work, for at most 10 minutes, and stop. The owners of their projects are told what could not be saved. Branches, conversations and triggers stay.",
    confirm: "Deactivate",
    danger: true,
  });
  if (sure === null) return;
  await request("POST /v1/people/:id/deactivate", { params: { id } });
  notice(`${name} is deactivated.`);
};

const reactivate = async ({ id, name }: Person): Promise<void> => {
  await request("POST /v1/people/:id/reactivate", { params: { id } });
  notice(`${name} has the former roles again, but no token. \`platform admin token create\` makes one.`);
};

const revoke = async ({ id, name }: Invitation): Promise<void> => {
  const sure = await ask({
    title: `Revoke the invitation of ${name}?`,
    text: "Its link stops working.",
    confirm: "Revoke",
    danger: true,
  });
  if (sure === null) return;
  await request("DELETE /v1/invitations/:id", { params: { id } });
  notice("The invitation was revoked.");
};

interface About {
  readonly person: Person;
  readonly isReader: boolean;
  /** The account keeps this owner. */
  readonly isLastOwner: boolean;
}

const PersonActions = ({ person, isReader, isLastOwner }: About) => {
  if (person.deactivated_at !== null)
    return <Act label="Reactivate" about={person.name} does={() => reactivate(person)} />;
  if (isLastOwner) return <Detail>the only owner</Detail>;
  const other = person.role === "owner" ? "member" : "owner";
  return (
    <>
      <Act label={`Make ${other}`} about={person.name} does={() => setRole(person, other)} />
      <Act label="Deactivate" about={person.name} does={() => deactivate(person, isReader)} />
    </>
  );
};

const PersonRow = ({ about, governs }: { readonly about: About; readonly governs: boolean }) => {
  const { name, role, created_at: since, deactivated_at: left } = about.person;
  return (
    <Row
      states={
        <>
          <Tag>{role}</Tag>
          {left !== null && <Tag tone="warn">deactivated</Tag>}
          {about.isReader && <Tag>you</Tag>}
        </>
      }
      actions={governs && <PersonActions {...about} />}
    >
      <strong>{name}</strong>
      <Detail>
        since <Time at={since} />
        {left !== null && " · deactivated "}
        {left !== null && <Time at={left} />}
      </Detail>
    </Row>
  );
};

const nameIn = (among: readonly { readonly id: string; readonly name: string }[], id: string) =>
  among.find((one) => one.id === id)?.name;

interface Known {
  readonly people: readonly Person[];
  readonly projects: readonly Project[];
}

const InvitationRow = ({ invitation, people, projects }: Known & { readonly invitation: Invitation }) => (
  <Row
    states={
      <>
        <Tag>{invitation.role}</Tag>
        {invitation.projects.map(({ project_id: id, role }) => (
          <Tag key={id}>{`${nameIn(projects, id) ?? "one project"}: ${role}`}</Tag>
        ))}
      </>
    }
    actions={<Act label="Revoke" about={invitation.name} does={() => revoke(invitation)} />}
  >
    <strong>{invitation.name}</strong>
    <Detail>
      {`by ${nameIn(people, invitation.created_by) ?? "an owner"} · expires `}
      <Time at={invitation.expires_at} />
    </Detail>
  </Row>
);

type Invite = Parameters<typeof request<"POST /v1/invitations">>[1]["payload"];

/** @param typed roles in projects, by the project's id */
const toInvitation = ({ name = "", role = "", ...grants }: Readonly<Record<string, string>>) =>
  ({
    name,
    role,
    projects: Object.entries(grants).flatMap(([project_id, given]) =>
      given === "" ? [] : [{ project_id, role: given }],
    ),
  }) as Invite;

const invite = async (typed: Readonly<Record<string, string>>): Promise<void> => {
  const { url } = await request("POST /v1/invitations", { payload: toInvitation(typed) });
  tell({
    title: `The invitation of ${typed["name"]}`,
    text: "Send this link to the person. It works once, within seven days, and is not shown again.",
    secret: url,
  });
};

const InviteForm = ({ projects }: Pick<Known, "projects">) => (
  <Form submit="Create the link" sending="Creating…" onSend={invite}>
    <TextField name="name" label="Name" hint="The person can change it." required />
    <SelectField
      name="role"
      label="Role in the account"
      options={[
        ["member", "Member"],
        ["owner", "Owner"],
      ]}
    />
    <FieldGroup title="Roles in projects">
      {projects.map(({ id, name, default_role: role }) => (
        <SelectField
          key={id}
          name={id}
          label={name}
          options={[["", `Default: ${role ?? "none"}`], ...ROLE_OPTIONS]}
        />
      ))}
    </FieldGroup>
  </Form>
);

const Invitations = ({ people, projects }: Known) => {
  const { data: invitations = [] } = useQuery(invitationsQuery);
  return (
    <>
      {invitations.length > 0 && (
        <section>
          <h2>Open invitations</h2>
          <ul className="rows">
            {invitations.map((invitation) => (
              <InvitationRow
                key={invitation.id}
                invitation={invitation}
                people={people}
                projects={projects}
              />
            ))}
          </ul>
        </section>
      )}
      <section>
        <h2>Invite a person</h2>
        <InviteForm projects={projects} />
      </section>
    </>
  );
};

const People = ({ me }: { readonly me: Answer<"GET /v1/me"> | null }) => {
  const list = useInfiniteQuery(peopleQuery);
  const { data: projects = [] } = useQuery(projectsQuery);
  const people = list.data?.pages.flatMap((page) => page.people) ?? [];
  const governs = me?.user.role === "owner";
  const owners = people.filter(({ role, deactivated_at: left }) => role === "owner" && left === null);
  return (
    <>
      <h1>People</h1>
      <p className="quiet">
        An owner is an owner of each project, and manages people. Members have roles in projects: see their
        settings.{!governs && " Only owners change this list."}
      </p>
      <ul className="rows">
        {people.map((person) => (
          <PersonRow
            key={person.id}
            governs={governs}
            about={{
              person,
              isReader: person.id === me?.user.id,
              isLastOwner: person.role === "owner" && owners.length === 1 && !list.hasNextPage,
            }}
          />
        ))}
      </ul>
      <More list={list}>Show more people</More>
      {governs && <Invitations people={people} projects={projects} />}
    </>
  );
};

export const pages = {
  join,
  joined,
  people: framedPage<void>({
    load: async () => {
      await Promise.all([
        queries.infiniteQuery(peopleQuery),
        queries.query(projectsQuery),
        queries.query(invitationsQuery),
      ]);
    },
    title: () => "People",
    Body: People,
  }),
};
