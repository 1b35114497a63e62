/** Endpoints whose shape recurs: one record, a page of records, a deletion. */
import * as Schema from "effect/Schema";
import { HttpApiEndpoint, HttpApiSchema } from "effect/http-api";
import type { Privilege } from "../../domain/person/privileges.ts";
import { RequiredPrivilege } from "./access.ts";
import { NotFound } from "./errors.ts";
import { pageQuery } from "./schemas.ts";

type Path = `/${string}`;

/** An answer that a cursor continues. */
export const page = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct({ ...fields, next_cursor: Schema.NullOr(Schema.String) });

/** GET of what the address names. */
export const show = <
  const Name extends string,
  const At extends Path,
  Params extends Schema.Struct.Fields,
  Success extends Schema.Top,
>(
  name: Name,
  path: At,
  {
    privilege,
    ...shape
  }: { readonly params: Params; readonly success: Success; readonly privilege: Privilege },
) => HttpApiEndpoint.get(name, path, { ...shape, error: NotFound }).annotate(RequiredPrivilege, privilege);

/** GET of a page of all that the caller reaches. */
export const listAll = <const Name extends string, const At extends Path, Success extends Schema.Top>(
  name: Name,
  path: At,
  { success, privilege }: { readonly success: Success; readonly privilege: Privilege },
) => HttpApiEndpoint.get(name, path, { query: pageQuery, success }).annotate(RequiredPrivilege, privilege);

/** DELETE of what the address names. */
export const remove = <const Name extends string, const At extends Path, Params extends Schema.Struct.Fields>(
  name: Name,
  path: At,
  { params, privilege }: { readonly params: Params; readonly privilege: Privilege },
) =>
  HttpApiEndpoint.delete(name, path, {
    params,
    success: HttpApiSchema.NoContent,
    error: NotFound,
  }).annotate(RequiredPrivilege, privilege);
