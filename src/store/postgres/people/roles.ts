/** Roles in SQL: the same rule as `roleIn` of domain/person/role.ts. */
import type * as SqlClient from "effect/sql/SqlClient";
import type { ProjectRole } from "../../../domain/person/role.ts";
import type { ProjectReader } from "../../ports/projects/projects.ts";

/** A person's role in a project, or null. Her row is in scope as `users`, the project's as `project`. */
export const ROLE_IN_PROJECT = `
  CASE WHEN users.role = 'owner' THEN 'owner' ELSE (
    SELECT CASE
      WHEN own.role = 'owner' THEN 'owner'
      WHEN 'member' IN (own.role, project.default_role) THEN 'member'
      WHEN 'viewer' IN (own.role, project.default_role) THEN 'viewer'
    END
    FROM (SELECT) AS once LEFT JOIN project_members AS own
      ON own.project_id = project.id AND own.user_id = users.id
  ) END`;

/** `PersonNow` of domain/person/role.ts as columns. The same rows are in scope. */
export const PERSON_NOW = `users.deactivated_at IS NULL AS "isActive", ${ROLE_IN_PROJECT} AS role`;

/**
 * A token's role in a project, or null: its person's. A trigger's session acts for no person, so its tokens are a
 * member's. The token's row is in scope as `token`, too.
 */
export const TOKEN_ROLE = `CASE WHEN token.origin = 'trigger' THEN 'member' ELSE ${ROLE_IN_PROJECT} END`;

/** Whether a person has at least this role in the project. Its row is in scope as `project`. */
export const hasRoleIn = (sql: SqlClient.SqlClient, userId: string, least: ProjectRole = "viewer") => sql`
  EXISTS (SELECT FROM users WHERE users.id = ${userId}
    AND ${sql.literal(`${roleRank(ROLE_IN_PROJECT)} >= ${roleRank(`'${least}'`)}`)})`;

/** The ids of the reader's projects: those in which the person has at least this role, or all of the account. */
export const readableProjects = (
  sql: SqlClient.SqlClient,
  { accountId, userId }: ProjectReader,
  least: ProjectRole = "viewer",
) => sql`
  SELECT project.id FROM projects AS project WHERE project.account_id = ${accountId}
    ${userId === null ? sql.literal("") : sql`AND ${hasRoleIn(sql, userId, least)}`}`;

/** A role's place among the roles. */
export const roleRank = (role: string): string =>
  `array_position(ARRAY['viewer', 'member', 'owner'], ${role})`;
