"""The lessons' predictions as a bank of questions: Moodle XML, and QTI 1.2 for Canvas and others.

Each question has the code it is about, one right option, and a sentence about each option as feedback.
Formats: https://docs.moodle.org/en/Moodle_XML_format and IMS Question & Test Interoperability 1.2.
"""

import html
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as xml

from nbconvert.filters.markdown_mistune import markdown2html_mistune

from course.classroom.materials import name_of
from course.classroom.materials.questions import Asked, asked
from course.classroom.materials.texts import standing_alone
from course.figures.predict.figure import marked_up

WHEN = (1980, 1, 1, 0, 0, 0)  # of the files in the archive: the same questions give the same bytes
QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
PACKAGE = "http://www.imsglobal.org/xsd/imscp_v1p1"
KIND = "multiple_choice_question"


def shown(question: Asked) -> str:
    """Render a question as HTML, with its code."""
    said = [code(question.before)] if question.before else []
    if question.scene:
        said.append(markdown2html_mistune(standing_alone(question.scene)))
    said.append(f"<p><strong>{marked_up(question.question)}</strong></p>")
    if question.code:
        said.append(f"<p>This is what is run next:</p>{code(question.code)}")
    return "".join(said)


def code(source: str) -> str:
    return f"<pre><code>{html.escape(source, quote=False)}</code></pre>"


def moodle(lessons: Mapping[str, Path]) -> str:
    """Write the questions of lessons (number, notebook) as Moodle imports them, a category for each lesson."""
    root = xml.Element("quiz")
    for number, path in lessons.items():
        found = list(asked(path))
        if not found:
            continue
        category = xml.SubElement(root, "question", type="category")
        text(category, "category", f"$course$/top/Undertorch/{number} {name_of(path)}")
        for one in found:
            question = xml.SubElement(root, "question", type="multichoice")
            text(question, "name", f"{one.key} {one.part}")
            text(question, "questiontext", shown(one), format="html")
            for name, value in (("defaultgrade", "1"), ("single", "true"), ("shuffleanswers", "true")):
                xml.SubElement(question, name).text = value
            xml.SubElement(question, "answernumbering").text = "abc"
            for option in one.options:
                answer = text(
                    question, "answer", marked_up(option.text), format="html", fraction=str(100 * option.right)
                )
                text(answer, "feedback", marked_up(option.words), format="html")
    return written(root)


def text(parent: xml.Element, name: str, content: str, **more: str) -> xml.Element:
    """Make an element the way Moodle does: with its content in a <text>."""
    made = xml.SubElement(parent, name, more)
    xml.SubElement(made, "text").text = content
    return made


def qti(lessons: Mapping[str, Path]) -> bytes:
    """Pack the questions of lessons as a content package: a zip file of a manifest and a quiz for each lesson."""
    manifest = xml.Element("manifest", identifier="undertorch", xmlns=PACKAGE)
    about = xml.SubElement(manifest, "metadata")
    for name, value in (("schema", "IMS Content"), ("schemaversion", "1.1.3")):
        xml.SubElement(about, name).text = value
    xml.SubElement(manifest, "organizations")
    resources = xml.SubElement(manifest, "resources")
    files = {}
    for number, path in lessons.items():
        if found := list(asked(path)):
            files[f"{path.stem}.xml"] = written(assessment(path.stem, f"{number} {name_of(path)}", found))
            resource = xml.SubElement(resources, "resource", identifier=f"quiz_{number}", type="imsqti_xmlv1p2")
            xml.SubElement(resource, "file", href=f"{path.stem}.xml")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in {"imsmanifest.xml": written(manifest), **files}.items():
            archive.writestr(zipfile.ZipInfo(name, WHEN), content.encode(), zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def assessment(name: str, title: str, questions: list[Asked]) -> xml.Element:
    root = xml.Element("questestinterop", xmlns=QTI)
    section = xml.SubElement(
        xml.SubElement(root, "assessment", ident=name, title=title), "section", ident=f"{name}_all"
    )
    for one in questions:
        item = xml.SubElement(section, "item", ident=one.key.replace(".", "_"), title=f"{one.key} {one.part}")
        fields = xml.SubElement(xml.SubElement(item, "itemmetadata"), "qtimetadata")
        for label, value in (("question_type", KIND), ("points_possible", "1")):
            field = xml.SubElement(fields, "qtimetadatafield")
            xml.SubElement(field, "fieldlabel").text = label
            xml.SubElement(field, "fieldentry").text = value
        presentation = xml.SubElement(item, "presentation")
        material(presentation, shown(one))
        answers = xml.SubElement(presentation, "response_lid", ident="answer", rcardinality="Single")
        choices = xml.SubElement(answers, "render_choice", shuffle="Yes")
        judged = xml.SubElement(item, "resprocessing")
        score = {"varname": "SCORE", "vartype": "Decimal", "minvalue": "0", "maxvalue": "100"}
        xml.SubElement(xml.SubElement(judged, "outcomes"), "decvar", score)
        for place, option in enumerate(one.options):
            label = f"option{place}"
            material(xml.SubElement(choices, "response_label", ident=label), marked_up(option.text))
            condition = xml.SubElement(judged, "respcondition", {"continue": "No" if option.right else "Yes"})
            chosen = xml.SubElement(xml.SubElement(condition, "conditionvar"), "varequal", respident="answer")
            chosen.text = label
            if option.right:
                xml.SubElement(condition, "setvar", action="Set", varname="SCORE").text = "100"
            xml.SubElement(condition, "displayfeedback", feedbacktype="Response", linkrefid=f"{label}_said")
        for place, option in enumerate(one.options):
            said = xml.SubElement(item, "itemfeedback", ident=f"option{place}_said")
            material(xml.SubElement(said, "flow_mat"), marked_up(option.words))
    return root


def material(parent: xml.Element, content: str) -> None:
    xml.SubElement(xml.SubElement(parent, "material"), "mattext", texttype="text/html").text = content


def written(root: xml.Element) -> str:
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=False).join(
        ['<?xml version="1.0" encoding="UTF-8"?>\n', "\n"]
    )
