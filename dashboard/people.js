/**
 * The people of the account and its open invitations, and who has which role in a project. An owner invites, changes
 * roles, and deactivates.
 */
import { getJson, getJsonOrNull, getList, patch, post, put, remove } from "./api.js";
import { ask, tell } from "./dialog.js";
import { h } from "./dom.js";
import { formView } from "./forms.js";
import { button, detail, listRow, tag, time } from "./parts.js";
import { projectPath } from "./project.js";
import { ROLE_OPTIONS } from "./roles.js";

/** @typedef {import("./wire.d.ts").Person} Person */
/** @typedef {import("./wire.d.ts").Invitation} Invitation */
/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {import("./wire.d.ts").Member} Member */
/** @typedef {{members: Member[], everyone: Person[]}} Members everyone: who can get a role */
/** @typedef {{people: Person[], more: boolean, projects: Project[], invitations: Invitation[]}} PeoplePage */

const people = {
  /** @param {string[]} _params @param {import("./app.js").Extent} extent @returns {Promise<PeoplePage>} */
  load: async (_params, { pages }) => {
    const [{ items, more }, { projects }, open] = await Promise.all([
      getList("/v1/people", "people", pages),
      getJson("/v1/projects?limit=200"),
      // Only owners may read them.
      getJsonOrNull("/v1/invitations?limit=200", [403]),
    ]);
    return { people: items, more, projects, invitations: open?.invitations ?? [] };
  },

  title: () => "People",

  /** @param {PeoplePage} data @param {import("./wire.d.ts").Me | null} me */
  view: ({ people: all, more, projects, invitations }, me) => {
    const governs = me?.user.role === "owner";
    const owners = all.filter(({ role, deactivated_at: left }) => role === "owner" && left === null);
    return [
      h("h1", { "data-key": "heading" }, "People"),
      h(
        "p",
        { class: "quiet", "data-key": "about" },
        "An owner is an owner of each project, and manages people. Members have roles in projects: see their settings.",
        !governs && " Only owners change this list.",
      ),
      h(
        "ul",
        { class: "rows", "data-key": "people" },
        all.map((person) =>
          row(person, {
            governs,
            isOwn: person.id === me?.user.id,
            isLastOwner: person.role === "owner" && owners.length === 1 && !more,
          }),
        ),
      ),
      more && h("p", { class: "more", "data-key": "more" }, button("more", "Show more people")),
      governs &&
        invitations.length > 0 &&
        h(
          "section",
          { "data-key": "invitations" },
          h("h2", {}, "Open invitations"),
          h(
            "ul",
            { class: "rows" },
            invitations.map((invitation) => invitationRow(invitation, { people: all, projects })),
          ),
        ),
      governs && h("section", { "data-key": "invite" }, h("h2", {}, "Invite a person"), inviteForm(projects)),
    ];
  },
};

/** @param {Person} person @param {{governs: boolean, isOwn: boolean, isLastOwner: boolean}} about isLastOwner: the account keeps this owner */
const row = ({ id, name, role, created_at, deactivated_at: left }, { governs, isOwn, isLastOwner }) => {
  /** @param {string} action @param {string} label @param {string} [given] */
  const act = (action, label, given) =>
    governs &&
    button(action, label, {
      class: "plain",
      "data-person": id,
      "data-title": name,
      "data-role": given,
      "data-own": isOwn ? "yes" : "",
      "aria-label": `${label}: ${name}`,
    });
  const other = role === "owner" ? "member" : "owner";
  let actions = [act("set-account-role", `Make ${other}`, other), act("deactivate", "Deactivate")];
  if (left !== null) actions = [act("reactivate", "Reactivate")];
  else if (isLastOwner) actions = [governs && detail("the only owner")];
  return listRow(
    id,
    [h("strong", {}, name), detail("since ", time(created_at), left && [" · deactivated ", time(left)])],
    {
      states: [tag(role), left && tag("deactivated", "warn"), isOwn && tag("you")],
      actions,
    },
  );
};

/** @param {Invitation} invitation @param {{people: Person[], projects: Project[]}} known */
const invitationRow = (
  { id, name, role, projects: grants, created_by, expires_at },
  { people: all, projects },
) =>
  listRow(
    id,
    [
      h("strong", {}, name),
      detail(`by ${nameOf(created_by, all) ?? "an owner"} · expires `, time(expires_at)),
    ],
    {
      states: [
        tag(role),
        ...grants.map((grant) =>
          tag(`${nameOf(grant.project_id, projects) ?? "one project"}: ${grant.role}`),
        ),
      ],
      actions: [
        button("revoke-invitation", "Revoke", {
          class: "plain",
          "data-invitation": id,
          "data-title": name,
          "aria-label": `Revoke: ${name}`,
        }),
      ],
    },
  );

/** @param {string} id @param {{id: string, name: string}[]} among */
const nameOf = (id, among) => among.find((one) => one.id === id)?.name;

/** @param {Project[]} projects */
const inviteForm = (projects) =>
  formView({
    action: "invite",
    submit: "Make the link",
    sending: "Making…",
    fields: [
      { name: "name", label: "Name", hint: "The person can change it.", required: true },
      {
        name: "role",
        label: "Role in the account",
        options: [
          ["member", "Member"],
          ["owner", "Owner"],
        ],
      },
      {
        group: "Roles in projects",
        fields: projects.map(({ id, name, default_role: role }) => ({
          name: id,
          label: name,
          options: [["", `Default: ${role ?? "none"}`], ...ROLE_OPTIONS],
        })),
      },
    ],
  });

/** @param {string} project @returns {Promise<Members>} */
export const loadMembers = async (project) => {
  const [{ members }, listed] = await Promise.all([
    getJson(`${projectPath(project)}/members`),
    // A token of one project reads no list of people.
    getJsonOrNull("/v1/people?limit=200", [403]),
  ]);
  return { members, everyone: listed?.people ?? members.map((/** @type {Member} */ { user }) => user) };
};

/** @type {Record<string, string>} */
const DEFAULT_WORDS = { viewer: "Viewer", member: "Member", "": "No role: the project is hidden" };
/** @type {Record<string, string>} */
const MERGE_WORDS = { member: "Members and owners", owner: "Only owners" };

/** @param {import("./wire.d.ts").Project} project @param {Members} found @param {import("./wire.d.ts").Me | null} me */
export const membersView = ({ id, default_role, merge_role }, { members, everyone }, me) => {
  const governs =
    me?.user.role === "owner" ||
    members.some(({ user, role }) => user.id === me?.user.id && role === "owner");
  // An owner of the account has each role.
  const others = everyone.filter(({ role, deactivated_at: left }) => role !== "owner" && left === null);
  return [
    h(
      "ul",
      { class: "rows", "data-key": "members" },
      members.map((member) => memberRow(id, member, governs)),
    ),
    ...(governs
      ? [
          others.length > 0 && h("h3", { "data-key": "set" }, "Give a role"),
          others.length > 0 && memberForm(id, others),
          h("h3", { "data-key": "everyone" }, "Everyone else"),
          rolesForm(id, { default_role: default_role ?? "", merge_role }),
        ]
      : []),
  ];
};

/** @param {Member} member */
const reason = ({ user, role, own_role: own }) => {
  if (user.role === "owner") return "owner of the account";
  if (own === role) return "own role";
  return `the project's default role${own === null ? "" : `, which is higher than the own role ${own}`}`;
};

/** @param {string} project @param {Member} member @param {boolean} governs */
const memberRow = (project, member, governs) =>
  listRow(member.user.id, [h("strong", {}, member.user.name), detail(reason(member))], {
    states: [tag(member.role)],
    actions: [
      governs &&
        member.own_role !== null &&
        button("remove-member", "Remove", {
          class: "plain",
          "data-project": project,
          "data-person": member.user.id,
          "data-title": member.user.name,
          "aria-label": `Remove: ${member.user.name}`,
        }),
    ],
  });

/** @param {string} project @param {Person[]} others */
const memberForm = (project, others) =>
  formView({
    action: "set-member",
    submit: "Set the role",
    sending: "Saving…",
    input: { project },
    fields: [
      {
        name: "person",
        label: "Person",
        options: others.map(({ id, name }) => /** @type {[string, string]} */ ([id, name])),
      },
      {
        name: "role",
        label: "Role",
        hint: "The highest role counts: the person's own one, or the default role below.",
        options: ROLE_OPTIONS,
      },
    ],
  });

/** @param {string} project @param {{default_role: string, merge_role: string}} roles */
const rolesForm = (project, { default_role, merge_role }) =>
  formView({
    action: "save-roles",
    submit: "Save the roles",
    sending: "Saving…",
    input: { project },
    fields: [
      {
        name: "default_role",
        label: "Default role",
        hint: "Of all people of the account who have no higher role here.",
        value: default_role,
        options: Object.entries(DEFAULT_WORDS),
      },
      {
        name: "merge_role",
        label: "Who may merge",
        value: merge_role,
        options: Object.entries(MERGE_WORDS),
      },
    ],
  });

/** @type {Record<string, import("./forms.js").Submit>} */
export const forms = {
  invite: async ({ name = "", role = "", ...grants }, _input, page) => {
    const { url } = await post("/v1/invitations", {
      name,
      role,
      projects: Object.entries(grants).flatMap(([project_id, given]) =>
        given === "" ? [] : [{ project_id, role: given }],
      ),
    });
    tell({
      title: `The invitation of ${name}`,
      text: "Send this link to the person. It works once, within seven days, and is not shown again.",
      secret: url,
    });
    page.refresh();
  },

  "set-member": async ({ person = "", role = "" }, { project = "" }, page) => {
    await put(`${projectPath(project)}/members/${person}`, { role });
    page.notice("The role is set.");
    page.refresh();
  },

  "save-roles": async ({ default_role = "", merge_role = "" }, { project = "" }, page) => {
    await patch(projectPath(project), {
      default_role: default_role === "" ? null : default_role,
      merge_role,
    });
    page.notice("The roles are saved.");
    page.refresh();
  },
};

/** @type {Record<string, import("./actions.js").Action>} */
export const actions = {
  "set-account-role": async ({ person = "", title = "", role = "" }, page) => {
    const sure = await ask({
      title: `Make ${title} ${role} of the account?`,
      text:
        role === "owner"
          ? "An owner may do everything in each project, and manages people."
          : "From now on, the person's own role in each project counts, or the project's default role.",
      confirm: `Make ${role}`,
    });
    if (sure === null) return;
    await patch(`/v1/people/${person}`, { role });
    page.notice(`${title} is now ${role} of the account.`);
  },

  deactivate: async ({ person = "", title = "", own = "" }, page) => {
    const sure = await ask({
      title: `Deactivate ${title}?`,
      text:
        `${own === "" ? "" : "This is you: you will be signed out. "}The person's tokens end at once, with everything that they opened. ` +
        "Running sessions of the person save their work and stop. Branches, conversations and triggers stay.",
      confirm: "Deactivate",
    });
    if (sure === null) return;
    await post(`/v1/people/${person}/deactivate`);
    page.notice(`${title} is deactivated.`);
  },

  reactivate: async ({ person = "", title = "" }, page) => {
    await post(`/v1/people/${person}/reactivate`);
    page.notice(
      `${title} has the former roles again, but no token. \`platform admin token create\` makes one.`,
    );
  },

  "revoke-invitation": async ({ invitation = "", title = "" }, page) => {
    const sure = await ask({
      title: `Revoke the invitation of ${title}?`,
      text: "Its link stops working.",
      confirm: "Revoke",
    });
    if (sure === null) return;
    await remove(`/v1/invitations/${invitation}`);
    page.notice("The invitation was revoked.");
  },

  "remove-member": async ({ project = "", person = "", title = "" }, page) => {
    const sure = await ask({
      title: `Remove the own role of ${title}?`,
      text: "The project's default role stays. It counts for this person, too.",
      confirm: "Remove",
    });
    if (sure === null) return;
    await remove(`${projectPath(project)}/members/${person}`);
    page.notice(`The own role of ${title} was removed.`);
  },
};

export const pages = { people };
