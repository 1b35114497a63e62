/** Who has which role in a project. Its owners give and remove roles. */
import { getJson, getJsonOrNull, patch, put, remove } from "./api.js";
import { ask } from "./dialog.js";
import { h } from "./dom.js";
import { formView } from "./forms.js";
import { button, detail, listRow, tag } from "./parts.js";
import { projectPath } from "./project.js";
import { ROLE_OPTIONS } from "./roles.js";

/** @typedef {import("./wire.d.ts").Person} Person */
/** @typedef {import("./wire.d.ts").Member} Member */
/** @typedef {{members: Member[], everyone: Person[]}} Members everyone: who can get a role */

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
