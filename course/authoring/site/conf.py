"""How Sphinx makes the site."""

project = html_title = "Undertorch"
extensions = ["myst_nb", "course.authoring.site.extension"]
language = "en"

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["theme"]
html_css_files = ["site.css"]
html_js_files = ["live.js"]
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_math_renderer = "mathml"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

nb_code_prompt_show, nb_code_prompt_hide = "Show what comes out", "Hide what comes out"
nb_execution_mode = "off"  # the outputs are those that are stored, and tested
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
# None of the texts is written for MyST.
myst_disable_syntax = ["myst_line_comment", "myst_block_break", "myst_target", "myst_role", "colon_fence"]
