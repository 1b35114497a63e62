/**
 * Roles: what a person may do in her account and in its projects. The highest grant counts. No role takes anything
 * away.
 */

/** In the account. An owner is an owner of each of its projects. */
export const ACCOUNT_ROLES = ["member", "owner"] as const;
export type AccountRole = (typeof ACCOUNT_ROLES)[number];

/** In a project, from the lowest to the highest. Each may do what those before it may do. */
export const PROJECT_ROLES = ["viewer", "member", "owner"] as const;
export type ProjectRole = (typeof PROJECT_ROLES)[number];

/** The role of the account's other people in a project. Null if they have none: the project does not exist for them. */
export const DEFAULT_ROLES = ["viewer", "member"] as const;
export type DefaultRole = (typeof DEFAULT_ROLES)[number];

/** The lowest role that may merge a change request. */
export const MERGE_ROLES = ["member", "owner"] as const;
export type MergeRole = (typeof MERGE_ROLES)[number];

/** The settings of a new project. */
export const NEW_PROJECT_ROLES: { readonly defaultRole: DefaultRole | null; readonly mergeRole: MergeRole } =
  {
    defaultRole: "member",
    mergeRole: "member",
  };

/** Whether `role` includes all of `needed`. Null has nothing. */
export const includesRole = (role: ProjectRole | null, least: ProjectRole): boolean =>
  role !== null && PROJECT_ROLES.indexOf(role) >= PROJECT_ROLES.indexOf(least);

/** What a person's role in a project depends on. */
export interface Grants {
  readonly account: AccountRole;
  /** Her own grant in the project. */
  readonly own: ProjectRole | null;
  readonly projectDefault: DefaultRole | null;
}

/** A person's role in a project of her account: the highest grant. Null if the project does not exist for her. */
export const roleIn = ({ account, own, projectDefault }: Grants): ProjectRole | null => {
  if (account === "owner") return "owner";
  return PROJECT_ROLES.findLast((role) => role === own || role === projectDefault) ?? null;
};

/** A person's present role, where something that she asked for or decided earlier is to count. */
export interface PersonNow {
  readonly isActive: boolean;
  /** In the project. */
  readonly role: ProjectRole | null;
}

/** Why it does not count any more, as a reason of the API. */
export type Lapse = "user_deactivated" | "role_lost";

/** @param least the lowest role that may ask for it, or decide it. @returns null: it counts */
export const whyLapsed = ({ isActive, role }: PersonNow, least: ProjectRole): Lapse | null => {
  if (!isActive) return "user_deactivated";
  return includesRole(role, least) ? null : "role_lost";
};
