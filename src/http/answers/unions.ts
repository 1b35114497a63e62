/** The faults of a value that fits no member of a union. The formatter of schemas would print the members' types. */
import * as SchemaAST from "effect/SchemaAST";
import type * as SchemaIssue from "effect/SchemaIssue";

type Members = readonly SchemaAST.Objects[];

/** The members as they are sent, those of inner unions included. */
const unionMembers = ({ types }: SchemaAST.Union): readonly SchemaAST.AST[] =>
  types.map(SchemaAST.toEncoded).flatMap((type) => (SchemaAST.isUnion(type) ? unionMembers(type) : [type]));

/** The members of a union of objects, or null if some member is not an object. */
const objectMembers = (union: SchemaAST.Union): Members | null => {
  const members = unionMembers(union);
  return members.every(SchemaAST.isObjects) ? members : null;
};

const joinWithOr = (words: readonly string[]): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

/** What a caller calls a type: "a string", "a list", or a value itself. */
const typeNouns = (ast: SchemaAST.AST): readonly string[] => {
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
const requiredFields = ({ propertySignatures }: SchemaAST.Objects, except?: string): readonly string[] =>
  propertySignatures
    .filter(({ name, type }) => name !== except && type.context?.isOptional !== true)
    .map(({ name }) => `\`${String(name)}\``);

/** The value of the field by which an object of this type is known. Null if the field has another type. */
const fieldTag = ({ propertySignatures }: SchemaAST.Objects, field: string): string | null => {
  const type = propertySignatures.find(({ name }) => name === field)?.type;
  return type?._tag === "Literal" ? JSON.stringify(type.literal) : null;
};

/** Each member by the value of the field that tells them apart, with what else it must have. Null if no field tells them apart. */
const byTag = (members: Members): string | null => {
  const fields = members[0]?.propertySignatures.map(({ name }) => String(name)) ?? [];
  const field = fields.find((name) => members.every((member) => fieldTag(member, name) !== null));
  if (field === undefined) return null;
  const forms = members.map((member) => {
    const others = requiredFields(member, field).join(" and ");
    return `${fieldTag(member, field)}${others === "" ? "" : ` (with ${others})`}`;
  });
  return `must be an object whose \`${field}\` is ${joinWithOr(forms)}`;
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
  const members = objectMembers(ast);
  if (members === null)
    return issues.length === 0 ? `must be ${joinWithOr(unionMembers(ast).flatMap(typeNouns))}` : issues;
  const tagFault = byTag(members);
  if (tagFault !== null) return tagFault;
  // A value means the member whose fields it all has.
  const candidates = issues.filter((issue) => !lacksField(issue));
  if (candidates.length === 1) return candidates;
  const forms = members.map((member) => requiredFields(member).join(" and "));
  return members.length === 1 || forms.includes("")
    ? "must be an object"
    : `must be an object with ${joinWithOr(forms)}`;
};
