/** The faults of a value that fits no member of a union. The formatter of schemas would print the members' types. */
import * as SchemaAST from "effect/SchemaAST";
import type * as SchemaIssue from "effect/SchemaIssue";

type Members = readonly SchemaAST.Objects[];

/** The members as they are sent, those of inner unions included. */
const membersOf = ({ types }: SchemaAST.Union): readonly SchemaAST.AST[] =>
  types.map(SchemaAST.toEncoded).flatMap((type) => (SchemaAST.isUnion(type) ? membersOf(type) : [type]));

/** The members of a union of objects. Null: some member is no object. */
const objectsOf = (union: SchemaAST.Union): Members | null => {
  const members = membersOf(union);
  return members.every(SchemaAST.isObjects) ? members : null;
};

const oneOf = (words: readonly string[]): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

/** What a caller calls a type: "a string", "a list", or a value itself. */
const nounsOf = (ast: SchemaAST.AST): readonly string[] => {
  switch (ast._tag) {
    case "Literal":
      return [JSON.stringify(ast.literal)];
    case "Objects":
      return ["an object"];
    case "Arrays":
      return ["a list"];
    case "Boolean":
      return ["true", "false"];
    case "Null":
      return ["null"];
    default:
      return [`a ${ast._tag.toLowerCase()}`];
  }
};

/** The fields that an object of this type must have, without `except`. */
const requiredOf = ({ propertySignatures }: SchemaAST.Objects, except?: string): readonly string[] =>
  propertySignatures
    .filter(({ name, type }) => name !== except && type.context?.isOptional !== true)
    .map(({ name }) => `\`${String(name)}\``);

/** The value of the field by which an object of this type is known. Null: it has another type. */
const tagOf = ({ propertySignatures }: SchemaAST.Objects, field: string): string | null => {
  const type = propertySignatures.find(({ name }) => name === field)?.type;
  return type?._tag === "Literal" ? JSON.stringify(type.literal) : null;
};

/** Each member by the value of the field that tells them apart, with what else it must have. Null: none tells them apart. */
const byTag = (members: Members): string | null => {
  const fields = members[0]?.propertySignatures.map(({ name }) => String(name)) ?? [];
  const field = fields.find((name) => members.every((member) => tagOf(member, name) !== null));
  if (field === undefined) return null;
  const forms = members.map((member) => {
    const others = requiredOf(member, field).join(" and ");
    return `${tagOf(member, field)}${others === "" ? "" : ` (with ${others})`}`;
  });
  return `must be an object whose \`${field}\` is ${oneOf(forms)}`;
};

const lacksField = (issue: SchemaIssue.Issue): boolean => {
  switch (issue._tag) {
    case "MissingKey":
      return true;
    case "Composite":
      return issue.issues.some(lacksField);
    case "Pointer":
      return issue.path.length === 1 && issue.issue._tag === "MissingKey";
    default:
      return false;
  }
};

/**
 * Reads what a value lacks that fits no member of a union.
 *
 * @returns one sentence's rest ("must be …"), or the issues of the member that the value means
 */
export const readUnion = ({ ast, issues }: SchemaIssue.AnyOf): string | readonly SchemaIssue.Issue[] => {
  if (issues.length === 1) return issues;
  const members = objectsOf(ast);
  if (members === null)
    return issues.length === 0 ? `must be ${oneOf(membersOf(ast).flatMap(nounsOf))}` : issues;
  const tagged = byTag(members);
  if (tagged !== null) return tagged;
  // A value means the member whose fields it all has.
  const meant = issues.filter((issue) => !lacksField(issue));
  if (meant.length === 1) return meant;
  const forms = members.map((member) => requiredOf(member).join(" and "));
  return members.length === 1 || forms.includes("")
    ? "must be an object"
    : `must be an object with ${oneOf(forms)}`;
};
